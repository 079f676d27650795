// llama.cpp as a peer of `deno task bench cpu`: node-llama-cpp's CPU build inside Deno, through its own
// public API. Started with --no-lock and --no-config, so nobody but a bench ever downloads it, and
// nothing is built: the package carries the binaries, one of its computing part for each generation of processors.
// Without VARIANT the best one for this processor is taken.
//
// deno run -A --no-lock --no-config bench/cpu/llama_cpp.ts MODEL THREADS CONTEXT SEQUENCES [VARIANT]

import { type Engine, serve } from "../support/runner.ts";

const VERSION = "3.21.1";
const PACKAGE = `npm:node-llama-cpp@${VERSION}`;
// The only builds with variants that are named here; Haswell was the first to have AVX2.
const BINARIES = `npm:@node-llama-cpp/linux-x64@${VERSION}`;
const LIBRARY = /^libggml(\.v[\d.]+)?\.so$/;
const BEYOND_AVX2 = /AVX512|AVX_VNNI|AMX/;
const BATCH = 512;

/** The few names of node-llama-cpp used here. */
interface Peer {
  readonly LlamaLogLevel: { readonly error: string };
  getLlama(options: Record<string, unknown>): Promise<{
    loadModel(options: { modelPath: string }): Promise<{
      createContext(options: Record<string, unknown>): Promise<{ getSequence(): PeerSequence }>;
    }>;
    dispose(): Promise<void>;
    /** Instruction sets that the loaded build uses. */
    readonly systemInfo: string;
  }>;
}

interface PeerSequence {
  readonly nextTokenIndex: number;
  clearHistory(): Promise<void>;
  eraseContextTokenRanges(ranges: readonly { start: number; end: number }[]): Promise<void>;
  evaluateWithoutGeneratingNewTokens(ids: readonly number[]): Promise<void>;
  evaluate(
    ids: readonly number[],
    options: { temperature: number; yieldEogToken: boolean },
  ): AsyncIterable<number>;
}

const GREEDY = { temperature: 0, yieldEogToken: true } as const;

/** Tokens after `ids`, the first one apart: it ends the prefill. */
async function decode(sequence: PeerSequence, ids: readonly number[], count: number) {
  const out: number[] = [];
  let start = 0;
  for await (const id of sequence.evaluate(ids, GREEDY)) {
    if (out.length === 0) start = performance.now();
    out.push(id);
    if (out.length > count) break;
  }
  if (out.length <= count) throw new Error(`llama.cpp stopped after ${out.length} tokens`);
  return { ms: performance.now() - start, ids: out };
}

/**
 * Registers a variant of ggml's computing part before anybody else looks for one: then no other is loaded. The
 * addon is linked to the same library, so that both speak of one list.
 */
async function loadVariant(variant: string): Promise<void> {
  const { getBinsDir } = await import(BINARIES) as { getBinsDir(): { binsDir: string } };
  const folder = `${getBinsDir().binsDir}/linux-x64`;
  const library = [...Deno.readDirSync(folder)].find(({ name }) => LIBRARY.test(name));
  if (!library) throw new Error(`There is no libggml in ${folder}`);
  const { symbols } = Deno.dlopen(
    `${folder}/${library.name}`,
    { ggml_backend_load: { parameters: ["buffer"], result: "pointer" } } as const,
  );
  const path = `${folder}/libggml-cpu-${variant}.so`;
  if (symbols.ggml_backend_load(new TextEncoder().encode(`${path}\0`))) return;
  throw new Error(`ggml cannot load ${path} on this processor`);
}

async function start(
  [modelPath, threads, context, sequenceCount, variant]: readonly string[],
): Promise<Engine> {
  if (variant !== undefined) await loadVariant(variant);
  const { getLlama, LlamaLogLevel } = await import(PACKAGE) as Peer;
  const llama = await getLlama({
    gpu: false,
    build: "never",
    logLevel: LlamaLogLevel.error,
    maxThreads: Number(threads),
  });
  if (variant === "haswell" && BEYOND_AVX2.test(llama.systemInfo)) {
    throw new Error(`llama.cpp uses more than AVX2: ${llama.systemInfo}`);
  }
  const loadStart = performance.now();
  const model = await llama.loadModel({ modelPath: modelPath! });
  const made = await model.createContext({
    contextSize: Number(context),
    batchSize: BATCH,
    threads: Number(threads),
    sequences: Number(sequenceCount),
  });
  const sequences = Array.from({ length: Number(sequenceCount) }, () => made.getSequence());
  const [sequence] = sequences as [PeerSequence];
  let kept: readonly number[] | undefined; // what is known to stand before a repeated decode run
  return {
    loadMs: performance.now() - loadStart,
    prefill: async (ids) => {
      await sequence.clearHistory();
      kept = undefined;
      const start = performance.now();
      await sequence.evaluateWithoutGeneratingNewTokens(ids);
      return { ms: performance.now() - start };
    },
    decode: async (ids, count) => {
      const last = ids.length - 1;
      if (kept?.length === ids.length && kept.every((id, i) => id === ids[i])) {
        await sequence.eraseContextTokenRanges([{ start: last, end: sequence.nextTokenIndex }]);
      } else await sequence.clearHistory();
      // Where a cache cannot be shortened, more than the last token is missing.
      const missing = ids.slice(sequence.nextTokenIndex);
      kept = ids;
      return await decode(sequence, missing, count);
    },
    batch: async (prompts, count) => {
      for (const [i, prompt] of prompts.entries()) {
        await sequences[i]!.clearHistory();
        await sequences[i]!.evaluateWithoutGeneratingNewTokens(prompt.slice(0, -1));
      }
      const start = performance.now();
      await Promise.all(
        prompts.map((prompt, i) => decode(sequences[i]!, prompt.slice(-1), count - 1)),
      );
      return { ms: performance.now() - start };
    },
    close: () => llama.dispose(),
  };
}

if (import.meta.main) await serve(await start(Deno.args));
