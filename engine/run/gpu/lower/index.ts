// WebGPU kernels of ops on single elements by place: triangles, marks, elements by index, places of extremes. Indices
// that are addresses must be inputs of the graph, which are checked before a step.

import { ARG_BLOCK, argReduceShader } from "../../../../gpu/kernels/arg_reduce.ts";
import { ELEMENTS } from "../../../../gpu/kernels/element_types.ts";
import { IS_MARKED } from "../../../../gpu/kernels/strided_map.ts";
import type { GpuKernel } from "../kernel.ts";
import { boundsOf, type Dim, mul } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { axisOf } from "../../../ops/host_numbers.ts";
import { groupsFor, inputSlice, isLong, outputSlice } from "./lower.ts";
import { bitsOf, elementTypeOf, emitElements } from "./strided.ts";
import { indexLoop } from "../../wasm/lower/index.ts";
import { movableBytes } from "../../wasm/lower/strided.ts";
import { linesOf } from "../../wasm/lower/typed.ts";
import { denseStrides } from "../../../ops/strided_loop.ts";

/** Kernels of `trilu`. */
export const gpuTriluKernels: readonly GpuKernel[] = [{
  name: "gpu_trilu",
  when: ({ node: { inputs: [x], attributes } }) =>
    bitsOf(x!) !== undefined && Math.abs(attributes.k as number) < 2 ** 30,
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    const k = attributes.k as number;
    const column = "i % params.columns + params.right";
    const row = "i / params.columns % params.rows + params.down";
    const isKept = `${column} ${attributes.upper ? ">=" : "<="} ${row}`;
    emitElements(lowering, {
      name: "trilu",
      expression: `select(${ELEMENTS[bitsOf(x!)!].value}(), a, ${isKept})`,
      numbers: {
        ...{ columns: x!.shape.at(-1)!, rows: x!.shape.at(-2)! },
        ...{ right: Math.max(0, -k), down: Math.max(0, k) },
      },
      typeOf: (value) => bitsOf(value)!,
    });
  },
}];

/**
 * Whether indices are in range, `sizes` by their last dim: those that are known are, and inputs are checked before they
 * reach the GPU, if they are of one dim's size. Those that are computed are the host's, which reports a wrong one.
 */
export function areChecked({ role, data }: Value, sizes: readonly Dim[]): boolean {
  if (role === "input") return sizes.length === 1;
  if (role !== "constant" || !sizes.every((size) => typeof size === "number")) return false;
  return (data as Int32Array).every((index, i) => {
    const size = sizes[i % sizes.length] as number;
    return index >= -size && index < size;
  });
}

/** Size of the axis that a node's indices choose from. */
export function axisSize({ inputs: [x], attributes }: Node): Dim {
  return x!.shape[axisOf(attributes.axis as number, x!.shape.length)]!;
}

/** Words of an element, where it is of whole words. */
export function wordsOf(value: Value): number | undefined {
  const bytes = movableBytes(value) ?? 0;
  return bytes % 4 === 0 && bytes > 0 ? bytes / 4 : undefined;
}

/** Whether an element takes whole words. */
function hasWords(value: Value): boolean {
  const type = bitsOf(value);
  return type !== undefined && ELEMENTS[type].perWord === 1;
}

const INDEX_TYPES = ["f32", "i32", "i64"];

/** Kernels of `one_hot`. */
export const gpuOneHotKernels: readonly GpuKernel[] = [{
  name: "gpu_one_hot",
  when: ({ node: { inputs: [indices, values] } }) =>
    INDEX_TYPES.includes(indices!.dtype) && hasWords(values!),
  lower(lowering) {
    const { inputs: [indices], outputs: [out], attributes } = lowering.node;
    const axis = axisOf(attributes.axis as number, out!.shape.length);
    const { length: depth, inner } = linesOf(out!, axis);
    const type = elementTypeOf(indices!)!;
    emitElements(lowering, {
      name: "one_hot",
      expression: "select(b_in[0], b_in[1], is_marked(a, i / params.inner % params.depth))",
      functions: IS_MARKED[type]!,
      numbers: { depth, inner },
      loop: {
        sizes: out!.shape,
        strides: [denseStrides(indices!.shape).toSpliced(axis, 0, 0), out!.shape.map(() => 0)],
      },
      typeOf: (value) => value === indices ? type : bitsOf(value)!,
    });
  },
}];

/** Kernels of `gather_elements`. */
export const gpuGatherElementsKernels: readonly GpuKernel[] = [{
  name: "gpu_gather_elements",
  when: ({ node }) =>
    hasWords(node.inputs[0]!) && areChecked(node.inputs[1]!, [axisSize(node)]) &&
    indexLoop(node).sizes.length <= 6,
  lower(lowering) {
    const { inputs: [x, indices], attributes } = lowering.node;
    const axis = axisOf(attributes.axis as number, x!.shape.length);
    const index = indices!.dtype === "i64" ? "bitcast<i32>(b.x)" : "b";
    emitElements(lowering, {
      name: "gather_elements",
      expression:
        `a_in[a_place + u32(${index} + select(0, i32(params.size), ${index} < 0)) * params.along]`,
      numbers: { size: x!.shape[axis]!, along: denseStrides(x!.shape)[axis]! },
      loop: indexLoop(lowering.node),
      typeOf: (value) => value === indices ? elementTypeOf(value)! : bitsOf(value)!,
    });
  },
}];

const COMPARED = ["f32", "i32", "u32", "i16", "u16", "i8", "u8"];

/** Kernels of `arg_reduce`; an empty line has no answer, and the reference says so. */
export const gpuArgReduceKernels: readonly GpuKernel[] = [{
  name: "gpu_arg_reduce",
  when: ({ node: { inputs: [x], attributes } }) =>
    COMPARED.includes(x!.dtype) && boundsOf(linesOf(x!, attributes.axis as number).length).min > 0,
  lower(lowering) {
    const { inputs: [x], outputs: [y], attributes } = lowering.node;
    const { outer, length, inner } = linesOf(x!, attributes.axis as number);
    const lines = mul(outer, inner), long = isLong(length);
    lowering.emit({
      shader: argReduceShader({
        long,
        type: elementTypeOf(x!)!,
        index: y!.dtype === "i64" ? "pair" : "i32",
        largest: attributes.kind === "max",
        last: attributes.last as boolean,
      }),
      storage: { x: inputSlice(lowering, 0), y: outputSlice(lowering) },
      uniforms: { lines, length, inner },
      workgroups: groupsFor(lines, long ? 1 : ARG_BLOCK),
    });
  },
}];
