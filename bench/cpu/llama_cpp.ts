// llama.cpp as the peer of `deno task bench cpu`: node-llama-cpp's CPU build inside Deno, through its own
// public API. Started with --no-lock and --no-config, so nobody but a bench ever downloads it, and
// nothing is built: the package carries the binaries.
//
// deno run -A --no-lock --no-config bench/cpu/llama_cpp.ts MODEL THREADS

import { type Engine, serve } from "../support/runner.ts";

const PACKAGE = "npm:node-llama-cpp@3.21.1";
const CONTEXT = 1024;
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
  clearHistory(): Promise<void>;
  evaluateWithoutGeneratingNewTokens(ids: readonly number[]): Promise<void>;
  evaluate(ids: readonly number[], options: { temperature: number }): AsyncIterable<number>;
}

async function start(modelPath: string, threads: number): Promise<Engine> {
  const { getLlama, LlamaLogLevel } = await import(PACKAGE) as Peer;
  const llama = await getLlama({
    gpu: false,
    build: "never",
    logLevel: LlamaLogLevel.error,
    maxThreads: threads,
  });
  const loadStart = performance.now();
  const model = await llama.loadModel({ modelPath });
  const context = await model.createContext({
    contextSize: CONTEXT,
    batchSize: BATCH,
    threads,
    sequences: 1,
  });
  const sequence = context.getSequence();
  return {
    loadMs: performance.now() - loadStart,
    prefill: async (ids) => {
      await sequence.clearHistory();
      const start = performance.now();
      await sequence.evaluateWithoutGeneratingNewTokens(ids);
      return { ms: performance.now() - start };
    },
    decode: async (ids, count) => {
      await sequence.clearHistory();
      const out: number[] = [];
      let start = 0;
      for await (const id of sequence.evaluate(ids, { temperature: 0 })) {
        if (out.length === 0) start = performance.now(); // The first token ends the prefill.
        out.push(id);
        if (out.length > count) break;
      }
      if (out.length <= count) throw new Error(`llama.cpp stopped after ${out.length} tokens`);
      return { ms: performance.now() - start, ids: out };
    },
    close: () => llama.dispose(),
  };
}

if (import.meta.main) {
  const [path, threads] = Deno.args;
  await serve(await start(path!, Number(threads)));
}
