// onnxruntime-web inside Deno, WASM SIMD, as the peer of `deno task bench onnx`.
//
// deno run -A --no-lock --no-config --node-modules-dir=manual bench/onnx/onnxruntime_web.ts \
//   FILE THREADS INPUTS PACKAGES

import { createRequire } from "node:module";
import { type Engine, serve } from "../support/runner.ts";
import { elementsOf, type InputRule, sampleOf } from "./inputs.ts";

/** The few names of the package that are used here. */
export interface OnnxRuntimeWeb {
  readonly env: {
    readonly wasm: { numThreads: number; wasmPaths: string };
  };
  readonly Tensor: new (type: string, data: unknown, dims: readonly number[]) => unknown;
  readonly InferenceSession: {
    create(bytes: Uint8Array, options: Record<string, unknown>): Promise<{
      readonly outputNames: readonly string[];
      run(feeds: Record<string, unknown>): Promise<Record<string, { readonly data: Float32Array }>>;
    }>;
  };
}

async function start(
  path: string,
  threads: number,
  rules: readonly InputRule[],
  packages: string,
): Promise<Engine> {
  // Its ES module fails in Deno with more than one thread.
  const ort = createRequire(`${packages}/bench.cjs`)("onnxruntime-web") as OnnxRuntimeWeb;
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = `file://${packages}/node_modules/onnxruntime-web/dist/`;
  const feeds = Object.fromEntries(
    rules.map((rule) => [rule.name, new ort.Tensor(rule.type, elementsOf(rule), rule.dims)]),
  );
  const loadStart = performance.now();
  const session = await ort.InferenceSession.create(await Deno.readFile(path), {
    executionProviders: ["wasm"],
    graphOptimizationLevel: "all",
  });
  await session.run(feeds);
  const loadMs = performance.now() - loadStart;
  return {
    loadMs,
    graph: async (runs) => {
      let results: Awaited<ReturnType<typeof session.run>> = {};
      const begin = performance.now();
      for (let i = 0; i < runs; i++) results = await session.run(feeds);
      const ms = (performance.now() - begin) / runs;
      const { data } = results[session.outputNames[0]!]!;
      return { ms, vector: sampleOf(data) };
    },
    close: () => Promise.resolve(),
  };
}

if (import.meta.main) {
  const [path, threads, inputs, packages] = Deno.args;
  await serve(await start(path!, Number(threads), JSON.parse(inputs!), packages!));
  Deno.exit(0); // its workers would keep the process
}
