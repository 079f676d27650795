// The WASM kernel of `reduce`: float32, along axes that are neighbours, dims of size 1 aside.

import { ELEMENT_KINDS, REDUCE_KINDS } from "../../../../wasm/opcodes_onnx.ts";
import type { WasmKernel } from "../kernel.ts";
import { boundsOf, type Dim, equal, product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { axisOf } from "../../../ops/host_numbers.ts";
import { areFloat32 } from "./strided.ts";
import { elementKind } from "./typed.ts";
import { emit, outputAddress } from "./lower.ts";

/** Kept, reduced and kept dims, each as one; undefined if the axes are no neighbours. */
export function groupsOf(
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

const EXTREMES: ReadonlySet<string> = new Set(["max", "min"]);
const WHOLE: ReadonlySet<string> = new Set(["sum", "max", "min", "prod", "sum_square"]);

/** Kernel of `reduce` on whole numbers; the extreme of nothing is left to the reference. */
export const reduceIntegersKernel: WasmKernel = {
  name: "reduce_integers",
  when({ node }) {
    const type = elementKind(node.inputs[0]!.dtype) ?? Infinity;
    const groups = groupsOf(node);
    const kinds = type === ELEMENT_KINDS.bool ? EXTREMES : WHOLE;
    return type < ELEMENT_KINDS.f32 && kinds.has(node.attributes.kind as string) &&
      groups !== undefined && boundsOf(groups.length).min > 0;
  },
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    emit(lowering, {
      name: "reduce_integers",
      operands: {
        x: lowering.address(x!),
        y: outputAddress(lowering),
        kind: REDUCE_KINDS[attributes.kind as keyof typeof REDUCE_KINDS],
        type: elementKind(x!.dtype)!,
        ...groupsOf(lowering.node)!,
      },
    });
  },
};

/** Kernel of `reduce` on float64. */
export const reduceFloat64Kernel: WasmKernel = {
  ...reduceIntegersKernel,
  name: "reduce_float64",
  when: ({ node }) => node.inputs[0]!.dtype === "f64" && groupsOf(node) !== undefined,
};

/** Kernel of `reduce`. */
export const reduceKernel: WasmKernel = {
  name: "reduce_f32",
  when: ({ node }) =>
    areFloat32(node.inputs) && Object.hasOwn(REDUCE_KINDS, node.attributes.kind as string) &&
    groupsOf(node) !== undefined,
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    emit(lowering, {
      name: "reduce",
      operands: {
        x: lowering.address(x!),
        y: outputAddress(lowering),
        kind: REDUCE_KINDS[attributes.kind as keyof typeof REDUCE_KINDS],
        ...groupsOf(lowering.node)!,
      },
    });
  },
};
