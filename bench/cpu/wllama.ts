// wllama as a peer of `deno task bench cpu`: llama.cpp compiled to WASM, in Chromium, where it was made for: a
// page that is isolated, so that it may use threads, served from this process and driven through
// playwright-core. Times are those that its own API gives for the two phases of a completion. Its API takes
// prompts as text only, which may come out a token longer or shorter: times are scaled to the length asked for.
//
// deno run -A --no-lock --no-config --node-modules-dir=manual bench/cpu/wllama.ts \
//   MODEL THREADS CONTEXT PACKAGES CHROMIUM

import { createRequire } from "node:module";
import { loadTokenizer } from "../../mod.ts";
import { type Engine, serve } from "../support/runner.ts";

interface Page {
  goto(url: string): Promise<unknown>;
  evaluate(code: string): Promise<unknown>;
}

interface Playwright {
  readonly chromium: {
    launch(
      options: Record<string, unknown>,
    ): Promise<{ newPage(): Promise<Page>; close(): Promise<void> }>;
  };
}

/** What the page says of a completion. */
interface Timings {
  readonly prompt_n: number;
  readonly prompt_ms: number;
  readonly predicted_n: number;
  readonly predicted_ms: number;
}

const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
};
const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript",
  wasm: "application/wasm",
};

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

const PAGE = '<!doctype html><script type="module" src="/script.js"></script>';

async function answer(request: Request, model: string, packages: string): Promise<Response> {
  const { pathname } = new URL(request.url);
  const headers = (type: string) => ({ ...ISOLATED, "content-type": type });
  if (pathname === "/") return new Response(PAGE, { headers: headers("text/html") });
  if (pathname === "/script.js") return new Response(SCRIPT, { headers: headers(TYPES.js!) });
  const name = /^\/esm\/(?:[\w-]+\/)*[\w.-]+\.(\w+)$/.exec(pathname);
  const file = pathname === "/model"
    ? model
    : name && `${packages}/node_modules/@wllama/wllama${pathname}`;
  if (!file) return new Response(null, { status: 404, headers: ISOLATED });
  const type = TYPES[name?.[1] ?? ""] ?? "application/octet-stream";
  return new Response((await Deno.open(file)).readable, { headers: headers(type) });
}

async function start(
  [model, threads, context, packages, program]: readonly string[],
): Promise<Engine> {
  const require = createRequire(`${packages}/bench.cjs`);
  const { chromium } = require("playwright-core") as Playwright;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request) => answer(request, model!, packages!),
  );
  const browser = await chromium.launch({
    executablePath: program,
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.addr.port}/`);
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
    async close() {
      await browser.close();
      await server.shutdown();
    },
  };
}

if (import.meta.main) {
  await serve(await start(Deno.args));
  Deno.exit(0);
}
