// llama.cpp as a peer of `deno task bench cpu`: node-llama-cpp's CPU build inside Deno, through its own
// public API. Started with --no-lock and --no-config, so nobody but a bench ever downloads it, and
// nothing is built: the package carries the binaries.
//
// deno run -A --no-lock --no-config bench/cpu/llama_cpp.ts MODEL THREADS CONTEXT SEQUENCES

import { type Engine, serve } from "../support/runner.ts";

const PACKAGE = "npm:node-llama-cpp@3.21.1";
const BATCH = 512;

/** The few names of node-llama-cpp used here. */
interface Peer {
  readonly LlamaLogLevel: { readonly error: string };
  getLlama(options: Record<string, unknown>): Promise<{
    loadModel(options: { modelPath: string }): Promise<{
      createContext(options: Record<string, unknown>): Promise<{ getSequence(): PeerSequence }>;
    }>;
    dispose(): Promise<void>;
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

async function start(
  [modelPath, threads, context, sequenceCount]: readonly string[],
): Promise<Engine> {
  const { getLlama, LlamaLogLevel } = await import(PACKAGE) as Peer;
  const llama = await getLlama({
    gpu: false,
    build: "never",
    logLevel: LlamaLogLevel.error,
    maxThreads: Number(threads),
  });
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
