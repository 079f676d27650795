// onnxruntime-web in Chromium, where it was made for.
//
// deno run -A --no-lock --no-config --node-modules-dir=manual bench/onnx/chromium.ts \
//   FILE THREADS INPUTS PACKAGES CHROMIUM

import { openPage } from "../support/chromium.ts";
import { type Engine, type Reply, serve } from "../support/runner.ts";
import { elementsOf, type InputRule, sampleOf } from "./inputs.ts";

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

const FILE = /^\/dist\/([\w.-]+)$/;

async function start(
  [path, threads, inputs, packages, program]: readonly string[],
): Promise<Engine> {
  const page = await openPage({
    ...{ packages: packages!, program: program! },
    html: `<!doctype html><script src="/dist/ort.wasm.min.js"></script><script>${SCRIPT}</script>`,
    fileOf(pathname) {
      if (pathname === "/model") return path;
      const name = FILE.exec(pathname)?.[1];
      return name && `${packages}/node_modules/onnxruntime-web/dist/${name}`;
    },
  });
  const rules = (JSON.parse(inputs!) as InputRule[]).map((rule) => ({
    ...{ name: rule.name, type: rule.type, dims: rule.dims },
    values: Array.from(elementsOf(rule), Number),
  }));
  const loadMs = await page.evaluate(`start(${threads}, ${JSON.stringify(rules)})`) as number;
  return {
    loadMs,
    graph: async (runs) => await page.evaluate(`measure(${runs})`) as Reply,
    close: page.close,
  };
}

if (import.meta.main) {
  await serve(await start(Deno.args));
  Deno.exit(0);
}
