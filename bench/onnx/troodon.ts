// Our side of `deno task bench onnx`: loadGraph() of the public API, in a process of its own.
//
// deno run -A bench/onnx/troodon.ts FILE THREADS INPUTS PRECISION

import { type GraphTensor, loadGraph, type Precision } from "../../mod.ts";
import { type Engine, serve } from "../support/runner.ts";
import { elementsOf, type InputRule, sampleOf } from "./inputs.ts";

async function start(
  path: string,
  threads: number,
  rules: readonly InputRule[],
  precision: Precision,
): Promise<Engine> {
  const inputs = Object.fromEntries(
    rules.map((rule) => [rule.name, { data: elementsOf(rule), dims: rule.dims }]),
  );
  const loadStart = performance.now();
  const graph = await loadGraph(path, { device: "wasm", threads, precision });
  const name = graph.outputs[0]!.name;
  await graph.run(inputs);
  const loadMs = performance.now() - loadStart;
  return {
    loadMs,
    graph: async (runs) => {
      let results: Awaited<ReturnType<typeof graph.run>> = {};
      const begin = performance.now();
      for (let i = 0; i < runs; i++) results = await graph.run(inputs);
      const ms = (performance.now() - begin) / runs;
      const { data } = results[name] as GraphTensor;
      return { ms, vector: sampleOf(data as Float32Array) };
    },
    close: () => {
      graph.dispose();
      return Promise.resolve();
    },
  };
}

if (import.meta.main) {
  const [path, threads, inputs, precision] = Deno.args;
  await serve(await start(path!, Number(threads), JSON.parse(inputs!), precision as Precision));
}
