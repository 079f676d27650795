// onnxruntime-web in Chromium, where it was made for: a page that is isolated, so that it may use threads,
// served from this process, driven through playwright-core with the system's Chromium.
//
// deno run -A --no-lock --no-config --node-modules-dir=manual bench/onnx/chromium.ts \
//   FILE THREADS INPUTS PACKAGES CHROMIUM

import { createRequire } from "node:module";
import { type Engine, type Reply, serve } from "../support/runner.ts";
import type { InputRule } from "./inputs.ts";
import { elementsOf, sampleOf } from "./inputs.ts";

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

const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
};
const TYPES: Readonly<Record<string, string>> = {
  mjs: "text/javascript",
  js: "text/javascript",
  wasm: "application/wasm",
};

// Runs in the page.
const SCRIPT = `
${sampleOf}
const arrays = { float32: Float32Array, int32: Int32Array, int64: BigInt64Array };
async function start(threads, rules) {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = "/dist/";
  const feeds = {};
  for (const { name, type, dims, values } of rules) {
    const convert = type === "int64" ? BigInt : Number;
    feeds[name] = new ort.Tensor(type, arrays[type].from(values, convert), dims);
  }
  const begin = performance.now();
  const bytes = new Uint8Array(await (await fetch("/model")).arrayBuffer());
  const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
  await session.run(feeds);
  globalThis.bench = { session, feeds };
  return performance.now() - begin;
}
async function measure(runs) {
  const { session, feeds } = globalThis.bench;
  let results;
  const begin = performance.now();
  for (let i = 0; i < runs; i++) results = await session.run(feeds);
  const ms = (performance.now() - begin) / runs;
  return { ms, vector: sampleOf(results[session.outputNames[0]].data) };
}`;

async function answer(request: Request, path: string, packages: string): Promise<Response> {
  const { pathname } = new URL(request.url);
  const headers = (type: string) => ({ ...ISOLATED, "content-type": type });
  if (pathname === "/") {
    const page =
      `<!doctype html><script src="/dist/ort.wasm.min.js"></script><script>${SCRIPT}</script>`;
    return new Response(page, { headers: headers("text/html") });
  }
  const name = /^\/dist\/([\w.-]+\.(\w+))$/.exec(pathname);
  const file = pathname === "/model"
    ? path
    : name && `${packages}/node_modules/onnxruntime-web/dist/${name[1]}`;
  if (!file) return new Response(null, { status: 404, headers: ISOLATED });
  const type = TYPES[name?.[2] ?? ""] ?? "application/octet-stream";
  return new Response((await Deno.open(file)).readable, { headers: headers(type) });
}

async function start(
  [path, threads, inputs, packages, program]: readonly string[],
): Promise<Engine> {
  const require = createRequire(`${packages}/bench.cjs`);
  const { chromium } = require("playwright-core") as Playwright;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request) => answer(request, path!, packages!),
  );
  const browser = await chromium.launch({
    executablePath: program,
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.addr.port}/`);
  const rules = (JSON.parse(inputs!) as InputRule[]).map((rule) => ({
    ...{ name: rule.name, type: rule.type, dims: rule.dims },
    values: Array.from(elementsOf(rule), Number),
  }));
  const loadMs = await page.evaluate(`start(${threads}, ${JSON.stringify(rules)})`) as number;
  return {
    loadMs,
    graph: async (runs) => await page.evaluate(`measure(${runs})`) as Reply,
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
