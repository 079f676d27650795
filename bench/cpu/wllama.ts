// wllama as a peer of `deno task bench cpu`: llama.cpp compiled to WASM, in Chromium, where it was made for.
// Times are those that its own API gives for the two phases of a completion. Its API takes
// prompts as text only, which may come out a token longer or shorter: times are scaled to the length asked for.
//
// deno run -A --no-lock --no-config --node-modules-dir=manual bench/cpu/wllama.ts \
//   MODEL THREADS CONTEXT PACKAGES CHROMIUM

import { loadTokenizer } from "../../mod.ts";
import { openPage } from "../support/chromium.ts";
import { type Engine, serve } from "../support/runner.ts";

/** What the page says of a completion. */
interface Timings {
  readonly prompt_n: number;
  readonly prompt_ms: number;
  readonly predicted_n: number;
  readonly predicted_ms: number;
}

// Runs in the page.
const SCRIPT = `
import { Wllama } from "/esm/index.js";
let engine;
globalThis.start = async (threads, context) => {
  engine = new Wllama({ default: "/esm/wasm/wllama.wasm" }, { suppressNativeLog: true });
  const begin = performance.now();
  const blob = await (await fetch("/model")).blob();
  await engine.loadModel([blob], {
    n_threads: threads, n_ctx: context, n_batch: 512, n_gpu_layers: 0, n_parallel: 1, warmup: false,
  });
  return performance.now() - begin;
};
globalThis.complete = async (prompt, count) => {
  const answer = await engine.createCompletion({
    prompt, max_tokens: count, temperature: 0, ignore_eos: true, cache_prompt: false,
  });
  return answer.timings;
};
globalThis.isReady = true;`;

const FILE = /^\/esm\/(?:[\w-]+\/)*[\w.-]+\.\w+$/;

async function start(
  [model, threads, context, packages, program]: readonly string[],
): Promise<Engine> {
  const page = await openPage({
    ...{ packages: packages!, program: program! },
    html: `<!doctype html><script type="module">${SCRIPT}</script>`,
    fileOf(pathname) {
      if (pathname === "/model") return model;
      return FILE.test(pathname) ? `${packages}/node_modules/@wllama/wllama${pathname}` : undefined;
    },
  });
  while (!await page.evaluate("globalThis.isReady")) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const loadMs = await page.evaluate(`start(${threads}, ${context})`) as number;
  const tokenizer = await loadTokenizer(model!);
  const complete = async (ids: readonly number[], count: number) => {
    const prompt = JSON.stringify(tokenizer.decode(ids));
    return await page.evaluate(`complete(${prompt}, ${count})`) as Timings;
  };
  return {
    loadMs,
    async prefill(ids) {
      const { prompt_n, prompt_ms } = await complete(ids, 1);
      if (Math.abs(prompt_n - ids.length) > 1 + ids.length / 50) {
        throw new Error(`wllama took ${prompt_n} tokens instead of ${ids.length}`);
      }
      return { ms: prompt_ms / prompt_n * ids.length };
    },
    async decode(ids, count) {
      // The first token belongs to the prompt's phase.
      const { predicted_n, predicted_ms } = await complete(ids, count + 1);
      return { ms: predicted_ms / (predicted_n - 1) * count };
    },
    close: page.close,
  };
}

if (import.meta.main) {
  await serve(await start(Deno.args));
  Deno.exit(0);
}
