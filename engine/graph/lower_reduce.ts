// The WASM kernel of `reduce`: float32, along axes that are neighbours, dims of size 1 aside.

import { REDUCE_KINDS } from "../../wasm/opcodes_onnx.ts";
import { type Dim, equal, product } from "./dim.ts";
import type { Node } from "./graph.ts";
import { axisOf } from "./host_numbers.ts";
import { areFloat32 } from "./lower_strided.ts";
import { emit, outputAddress } from "./lower_wasm.ts";
import type { WasmKernel } from "./op.ts";

/** Kept, reduced and kept dims, each as one; undefined if the axes are no neighbours. */
function groupsOf(
  { inputs: [x], attributes }: Node,
): { readonly outer: Dim; readonly length: Dim; readonly inner: Dim } | undefined {
  const { shape } = x!;
  const axes = new Set((attributes.axes as number[]).map((axis) => axisOf(axis, shape.length)));
  const places = shape.flatMap((dim, axis) => axes.has(axis) && !equal(dim, 1) ? [axis] : []);
  const first = places[0] ?? shape.length, last = places.at(-1) ?? shape.length - 1;
  const between = shape.slice(first, last + 1);
  if (between.some((dim, i) => !axes.has(first + i) && !equal(dim, 1))) return undefined;
  return {
    outer: product(shape.slice(0, first)),
    length: product(between),
    inner: product(shape.slice(last + 1)),
  };
}

/** Kernel of `reduce`. */
export const reduceKernel: WasmKernel = {
  name: "reduce_f32",
  when: ({ node }) =>
    areFloat32(node.inputs) && Object.hasOwn(REDUCE_KINDS, node.attributes.kind as string) &&
    groupsOf(node) !== undefined,
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    emit(lowering, "reduce", {
      x: lowering.address(x!),
      y: outputAddress(lowering),
      kind: REDUCE_KINDS[attributes.kind as keyof typeof REDUCE_KINDS],
      ...groupsOf(lowering.node)!,
    });
  },
};
