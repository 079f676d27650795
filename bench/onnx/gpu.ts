// ONNX graphs on WebGPU, part by part: the time of a run from host array to host array, dispatches, waits for the device,
// and the time by kernel where the adapter has timestamps.
//
// deno run -A bench/onnx/gpu.ts [--only TEXT] [--rounds 15] [--top 12] [--each] [--model FILE] [--gpu dawn|FILE]
//
// `--model` takes the file of the cases that `--only` chooses, in place of the cache's. `--each` lists every dispatch.

import { parseArgs } from "node:util";
import { gpuOption } from "../../engine/cli/gpu_flag.ts";
import { openOnnx } from "../../engine/onnx/file/open_onnx.ts";
import { hostValueOf } from "../../engine/onnx/running/graph_tensor.ts";
import { openGraph } from "../../engine/onnx/running/open_graph.ts";
import { createReferenceBackend } from "../../engine/run/reference/reference_backend.ts";
import { machineName, median } from "../support/figures.ts";
import { byKernel, dispatchTimes, openWatchedGpu } from "../support/gpu_plans.ts";
import { GRAPH_CASES } from "./cases.ts";
import { elementsOf } from "./inputs.ts";

const { values: flags } = parseArgs({
  args: Deno.args,
  options: {
    only: { type: "string", default: "" },
    rounds: { type: "string", default: "15" },
    top: { type: "string", default: "12" },
    each: { type: "boolean", default: false },
    model: { type: "string" },
    gpu: { type: "string" },
  },
});
const rounds = Number(flags.rounds);
const folder = Deno.makeTempDirSync();

console.log(machineName());
for (const { name, model, inputs, precision } of GRAPH_CASES) {
  if (!name.includes(flags.only)) continue;
  const { device, watched } = await openWatchedGpu(await gpuOption(flags));
  const path = flags.model ?? await model(folder);
  const graph = openGraph(openOnnx(path), {
    ...{ device, precision, reference: createReferenceBackend(), limits: {}, maxBytes: 2 ** 32 },
  });
  const declared = new Map(graph.inputs.map(({ name, type }) => [name, type]));
  const given = new Map(inputs.map((rule) => {
    const value = { data: elementsOf(rule), dims: rule.dims };
    return [rule.name, hostValueOf(rule.name, { value, declared: declared.get(rule.name) })];
  }));
  const begin = performance.now();
  await graph.run(given);
  const firstMs = performance.now() - begin;
  const times: number[] = [];
  for (let i = 0; i < (rounds > 1 ? 3 : 0) + rounds; i++) {
    const start = performance.now();
    await graph.run(given);
    if (rounds === 1 || i >= 3) times.push(performance.now() - start);
  }
  const used = watched.filter(({ bindings }) => bindings);
  console.log(
    `${name}: ${median(times).toFixed(2)} ms a run (least ${
      Math.min(...times).toFixed(2)
    }), first ${firstMs.toFixed(0)} ms; parts on the device: ${used.length}, with ${
      used.map(({ plan }) => plan.dispatches).join(" + ")
    } dispatches`,
  );
  for (const one of used) {
    if (!one.plan.gpu.capabilities.timestamp) continue;
    const each = await dispatchTimes(one, 5);
    const sum = each.reduce((total, { ms }) => total + ms, 0);
    console.log(`  ${sum.toFixed(3).padStart(9)} ms  all dispatches, one by one`);
    for (const line of byKernel(each, Number(flags.top))) console.log(line);
    if (!flags.each) continue;
    for (const { name, shader, ms } of each) {
      console.log(`    ${(1e3 * ms).toFixed(1)} µs ${name} (${shader})`);
    }
  }
  graph.dispose();
}
Deno.exit(0);
