import { assert, assertEquals } from "@std/assert";
import { SHAPES, syntheticLlama } from "../../bench/gpu/synthetic.ts";
import { OFFSET_ALIGNMENT } from "../../gpu/constants.ts";
import type { LoadOptions } from "../decode/model.ts";
import type { Node } from "../graph/graph.ts";
import { prepareModel } from "../models/prepare.ts";
import { createCaseRandom } from "../ops/case_random.ts";
import { getOp } from "../ops/mod.ts";
import { caseGraph } from "./case_graph.ts";
import { DEVICE_FACTS } from "./device_facts.ts";
import { openDevice } from "./devices.ts";
import { GPU_KERNELS, LEAST_GPU } from "./gpu/kernel_table.ts";
import { answersOf } from "./kernel_choice.ts";
import { LEAST_WASM, WASM_KERNELS } from "./wasm/kernel_table.ts";

/** Whether a node does what stands beside it in other graphs. */
const FUSED: Readonly<Record<string, (node: Node) => boolean>> = {
  matmul: ({ inputs, attributes: { normed, gate } }) =>
    normed === true || gate !== "none" || inputs[3] !== undefined,
  glu: ({ inputs }) => inputs[1] === undefined,
  attention: ({ attributes: { style } }) => style !== "none",
};

function fusedNodes(): Node[] {
  return Object.entries(FUSED).flatMap(([op, isFused]) => {
    const nodes = getOp(op).cases!(createCaseRandom(1))
      .flatMap((given) => caseGraph(op, given).nodes.filter(({ name }) => name === op))
      .filter(isFused);
    assert(nodes.length > 0, op);
    return nodes;
  });
}

Deno.test("a device fuses neighbours where its table has a kernel that does, and not elsewhere", () => {
  const nodes = fusedNodes();
  const taken = {
    wasm: answersOf(WASM_KERNELS, LEAST_WASM),
    gpu: answersOf(GPU_KERNELS, LEAST_GPU),
  };
  for (const [device, { takes }] of Object.entries(taken)) {
    const names = nodes.filter(takes).map(({ op }) => op);
    const { fusesNeighbours } = DEVICE_FACTS[device as keyof typeof taken];
    assertEquals(names.length > 0, fusesNeighbours, `${device}: ${names.join()}`);
  }
});

Deno.test("a decoder's steps have the rows of its device where nobody says how many", async () => {
  const shape = SHAPES.find(({ name }) => name === "smollm2")!;
  const rowsOn = async (device: "gpu" | "wasm", options: LoadOptions) => {
    const kernels = { ...answersOf(GPU_KERNELS, LEAST_GPU), ...DEVICE_FACTS[device] };
    return (await prepareModel(syntheticLlama(shape), { options, kernels })).limits.batch;
  };
  assertEquals(await rowsOn("gpu", {}), 512);
  assertEquals(await rowsOn("wasm", {}), 256);
  assertEquals(await rowsOn("gpu", { batch: 64 }), 64);
  assertEquals(await rowsOn("gpu", { contextLength: 128 }), 128);
  const { rowsOfStep } = await openDevice("gpu", {
    gpu: { requestAdapter: () => Promise.resolve(null), rowsOfStep: 2048 },
  });
  assertEquals(rowsOfStep, 2048);
});

Deno.test("activations of a model for the GPU lie where bindings may begin: it is planned once", async () => {
  const shape = SHAPES.find(({ name }) => name === "smollm2")!;
  const kernels = { ...answersOf(GPU_KERNELS, LEAST_GPU), ...DEVICE_FACTS.gpu };
  const { plan } = await prepareModel(syntheticLlama(shape), { options: {}, kernels });
  assertEquals(plan.alignment % OFFSET_ALIGNMENT, 0);
  for (const { offset } of plan.placements.values()) assertEquals(offset % OFFSET_ALIGNMENT, 0);
});
