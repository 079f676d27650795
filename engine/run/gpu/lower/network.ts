// WebGPU kernels of the float32 ops that networks in ONNX are made of: products of computed matrices,
// pools, reductions along neighbouring axes, slices by index. Where sizes or shapes go beyond
// them, the host computes.

import { GATHER_BLOCK, gatherShader } from "../../../../gpu/kernels/gather.ts";
import { MATMUL_ANY_TILE, matmulAnyShader } from "../../../../gpu/kernels/matmul/any.ts";
import {
  MINUS_INFINITY_BITS,
  reduceLinesShader,
  REDUCTIONS,
} from "../../../../gpu/kernels/reduce_lines.ts";
import { averagePoolShader, maxPoolShader, WINDOW_BLOCK } from "../../../../gpu/kernels/windows.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import type { LoweredWindow } from "../../wasm/lower/conv_setup.ts";
import { ceilDiv, type Dim, mul, product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { axisOf } from "../../../ops/host_numbers.ts";
import { loweredWindow } from "../../wasm/lower/conv.ts";
import { windowUniforms } from "./conv.ts";
import { groupsFor, inputSlice, outputSlice } from "./lower.ts";
import { batchDims } from "../../wasm/lower/matmul_nd.ts";
import { aroundDims } from "../../wasm/lower/move.ts";
import { groupsOf } from "../../wasm/lower/reduce.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";
import { areChecked, axisSize, wordsOf } from "./index.ts";
import { countOf } from "../../wasm/lower/lower.ts";
import { completeWindow, three, type WindowAttributes, windowPads } from "../../../ops/windows.ts";

/** Kernels of `matmul_nd`. */
export const gpuMatmulNdKernels: readonly GpuKernel[] = [{
  name: "gpu_matmul_nd_f32",
  when({ node }) {
    const [a, b] = node.inputs;
    // One memory cannot be bound twice.
    return areFloat32([a, b]) && a !== b && a!.shape.length >= 2 && b!.shape.length >= 2 &&
      batchDims(node).length <= 2;
  },
  lower(lowering) {
    const { inputs: [a, b], attributes } = lowering.node;
    const [first, second] = a!.shape.slice(-2) as [Dim, Dim];
    const swapA = attributes.transpose_a === true, swapB = attributes.transpose_b === true;
    const [rows, inner] = swapA ? [second, first] : [first, second];
    const columns = swapB ? b!.shape.at(-2)! : b!.shape.at(-1)!;
    const dims = batchDims(lowering.node);
    const [outer, batch] = dims.length === 2 ? dims : [undefined, dims[0]];
    const steps = (side: "a" | "b", matrix: Dim) => ({
      [`${side}_outer`]: outer?.[side] ? mul(matrix, batch?.[side] ? batch.size : 1) : 0,
      [`${side}_batch`]: batch?.[side] ? matrix : 0,
    });
    lowering.emit({
      shader: matmulAnyShader,
      storage: {
        a: inputSlice(lowering, 0),
        b: inputSlice(lowering, 1),
        y: outputSlice(lowering),
      },
      uniforms: {
        ...{ rows, inner, columns, batch: batch?.size ?? 1 },
        ...swapA ? { a_row: 1, a_inner: rows } : { a_row: inner, a_inner: 1 },
        ...swapB ? { b_inner: 1, b_column: inner } : { b_inner: columns, b_column: 1 },
        ...steps("a", mul(rows, inner)),
        ...steps("b", mul(inner, columns)),
        alpha: attributes.alpha as number,
      },
      workgroups: [
        ceilDiv(columns, MATMUL_ANY_TILE),
        ceilDiv(rows, MATMUL_ANY_TILE),
        mul(outer?.size ?? 1, batch?.size ?? 1),
      ],
    });
  },
}];

/** Kernels of `reduce`. */
export const gpuReduceKernels: readonly GpuKernel[] = [{
  name: "gpu_reduce_f32",
  when: ({ node }) =>
    areFloat32(node.inputs) && Object.hasOwn(REDUCTIONS, node.attributes.kind as string) &&
    groupsOf(node) !== undefined,
  lower(lowering) {
    const { outer, length, inner } = groupsOf(lowering.node)!;
    const lines = mul(outer, inner);
    lowering.emit({
      shader: reduceLinesShader(lowering.node.attributes.kind as string),
      storage: { x_in: inputSlice(lowering, 0), y: outputSlice(lowering) },
      uniforms: { lines, length, inner, least: MINUS_INFINITY_BITS },
      workgroups: [lines],
    });
  },
}];

function poolWindow({ inputs: [x], attributes }: Node): LoweredWindow | undefined {
  if (x!.dtype !== "f32") return undefined;
  const node = { attributes } as Node;
  return loweredWindow(node, { kernel: attributes.kernel as number[], spatial: x!.shape.slice(2) });
}

function emitPool(
  lowering: GpuLowering,
  shader: typeof maxPoolShader,
  uniforms: Readonly<Record<string, Dim>>,
): void {
  const { outputs: [y] } = lowering.node;
  lowering.emit({
    shader,
    storage: { x: inputSlice(lowering, 0), y: outputSlice(lowering) },
    uniforms: { ...windowUniforms(lowering.node, poolWindow(lowering.node)!), ...uniforms },
    workgroups: groupsFor(countOf(y!), WINDOW_BLOCK),
  });
}

/** Kernels of `max_pool`. */
export const gpuMaxPoolKernels: readonly GpuKernel[] = [{
  name: "gpu_max_pool_f32",
  when: ({ node }) => !node.attributes.indices && poolWindow(node) !== undefined,
  lower: (lowering) => emitPool(lowering, maxPoolShader, { least: MINUS_INFINITY_BITS }),
}];

/** Kernels of `pool`; its pads behind the plane count only where sizes are known. */
export const gpuPoolKernels: readonly GpuKernel[] = [{
  name: "gpu_average_pool_f32",
  when: ({ node }) =>
    node.attributes.kind === "average" && poolWindow(node) !== undefined &&
    node.inputs[0]!.shape.slice(2).every((size) => typeof size === "number"),
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    const spatial = x!.shape.slice(2) as number[];
    const window = completeWindow(attributes as unknown as WindowAttributes);
    const ends = windowPads(spatial, window).map(({ end }, axis) => spatial[axis]! + end);
    const [limit_d, limit_h, limit_w] = three(ends, 1);
    emitPool(lowering, averagePoolShader, {
      count_pads: attributes.count_pads ? 1 : 0,
      ...{ limit_d, limit_h, limit_w },
    });
  },
}];

/** Kernels of `gather`. */
export const gpuGatherKernels: readonly GpuKernel[] = [{
  name: "gpu_gather",
  when: ({ node, node: { inputs: [x, indices] } }) =>
    wordsOf(x!) !== undefined && areChecked(indices!, [axisSize(node)]),
  lower(lowering) {
    const { inputs: [x, indices], outputs: [y], attributes } = lowering.node;
    const axis = axisOf(attributes.axis as number, x!.shape.length);
    const words = wordsOf(x!)!, count = mul(countOf(y!), words);
    lowering.emit({
      shader: gatherShader,
      storage: {
        x: inputSlice(lowering, 0),
        indices: inputSlice(lowering, 1),
        y: outputSlice(lowering),
      },
      uniforms: {
        count,
        size: x!.shape[axis]!,
        inner: mul(aroundDims(x!.shape, axis).inner, words),
        picks: product(indices!.shape),
        wide: indices!.dtype === "i64" ? 2 : 1,
      },
      workgroups: groupsFor(count, GATHER_BLOCK),
    });
  },
}];
