// Our side of `deno task bench encoder`: embed() through the public API, in a process of its own.
//
// deno run -A bench/encoder/troodon.ts MODEL THREADS PRECISION

import { embed, load, type Precision } from "../../mod.ts";
import { type Engine, serve } from "../support/runner.ts";

async function start(path: string, threads: number, precision: Precision): Promise<Engine> {
  const loadStart = performance.now();
  const model = await load(path, { device: "wasm", threads, precision });
  return {
    loadMs: performance.now() - loadStart,
    embed: async (texts) => {
      const start = performance.now();
      const vectors = await embed(model, texts);
      return { ms: performance.now() - start, vector: [...vectors[0]!] };
    },
    close: () => {
      model.dispose();
      return Promise.resolve();
    },
  };
}

if (import.meta.main) {
  const [path, threads, precision] = Deno.args;
  await serve(await start(path!, Number(threads), precision as Precision));
}
