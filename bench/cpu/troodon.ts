// Our side of `deno task bench cpu`: the engine through its own public API, in a process of its own.
//
// deno run -A bench/cpu/troodon.ts MODEL THREADS [PRECISION]

import { generate, load, type Precision } from "../../mod.ts";
import { type Engine, serve } from "../support/runner.ts";

const CONTEXT = 1024;

async function start(path: string, threads: number, precision: Precision): Promise<Engine> {
  const loadStart = performance.now();
  const model = await load(path, { device: "wasm", threads, precision, contextLength: CONTEXT });
  const session = model.createSession();
  return {
    loadMs: performance.now() - loadStart,
    prefill: async (ids) => {
      session.rewind(0);
      const start = performance.now();
      await session.sync(ids);
      return { ms: performance.now() - start };
    },
    decode: async (ids, count) => {
      session.rewind(0);
      const out: number[] = [];
      let start = 0;
      const options = { maxTokens: count + 1, temperature: 0, ignoreEos: true };
      for await (const { tokens } of generate(session, ids, options)) {
        if (out.length === 0) start = performance.now(); // The first token ends the prefill.
        for (const { id } of tokens) out.push(id);
      }
      return { ms: performance.now() - start, ids: out };
    },
    close: () => {
      model.dispose();
      return Promise.resolve();
    },
  };
}

if (import.meta.main) {
  const [path, threads, precision = "fast"] = Deno.args;
  await serve(await start(path!, Number(threads), precision as Precision));
}
