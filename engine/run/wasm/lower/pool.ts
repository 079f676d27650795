// Lowering of pools over float32 planes.

import type { WasmKernel, WasmLowering } from "../kernel.ts";
import { mul } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { loweredWindow, planeOperands, windowOperands } from "./conv.ts";
import { emit, inputAddress, outputAddress } from "./lower.ts";
import { completeWindow, three, type WindowAttributes, windowPads } from "../../../ops/windows.ts";

function windowOf(node: Node) {
  const [x] = node.inputs;
  if (x!.dtype !== "f32") return undefined;
  return loweredWindow(node, {
    kernel: node.attributes.kernel as number[],
    spatial: x!.shape.slice(2),
  });
}

function emitPool(lowering: WasmLowering, average: boolean): void {
  const { node } = lowering, { inputs: [x], outputs: [y] } = node;
  const window = completeWindow(node.attributes as unknown as WindowAttributes);
  const sizes = x!.shape.slice(2).map((size) => typeof size === "number" ? size : 0);
  const [end_d, end_h, end_w] = three(windowPads(sizes, window).map(({ end }) => end), 0);
  emit(lowering, {
    name: "pool",
    operands: {
      x: inputAddress(lowering, 0),
      y: outputAddress(lowering),
      planes: mul(x!.shape[0]!, x!.shape[1]!),
      ...planeOperands(x!, y!),
      ...windowOperands(windowOf(node)!),
      ...{ end_d, end_h, end_w },
      average: average ? 1 : 0,
      count_pads: node.attributes.count_pads ? 1 : 0,
    },
  });
}

/** Averages. */
export const averagePoolKernel: WasmKernel = {
  name: "pool_average_f32",
  when: ({ node }) => node.attributes.kind === "average" && windowOf(node) !== undefined,
  lower: (lowering) => emitPool(lowering, true),
};

/** Largest elements, without their indices. */
export const maxPoolKernel: WasmKernel = {
  name: "pool_max_f32",
  when: ({ node }) => !node.attributes.indices && windowOf(node) !== undefined,
  lower: (lowering) => emitPool(lowering, false),
};
