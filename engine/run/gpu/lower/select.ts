// WebGPU kernels that select and turn: best elements of lines, runs by tuples of indices, running totals, margins that
// repeat a tensor, heads turned by tables.

import { CUMULATIVE_BLOCK, cumulativeShader } from "../../../../gpu/kernels/cumulative.ts";
import { GATHER_BLOCK, gatherNdShader } from "../../../../gpu/kernels/gather.ts";
import { PAD_BLOCK, PAD_RANK, type PadMode, padShader } from "../../../../gpu/kernels/pad.ts";
import { ROTARY_BLOCK, rotaryShader } from "../../../../gpu/kernels/rotary.ts";
import { type OrderedType, TOP_BLOCK, topKShader } from "../../../../gpu/kernels/top_k.ts";
import type { GpuKernel } from "../kernel.ts";
import { boundsOf, ceilDiv, type Dim, equal, mul, product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { heads, type Layout } from "../../../ops/attention_rows.ts";
import { denseStrides } from "../../../ops/strided_loop.ts";
import { countOf, isStatic } from "../../wasm/lower/lower.ts";
import { padAxes } from "../../wasm/lower/pad.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";
import { linesOf } from "../../wasm/lower/typed.ts";
import { areChecked, wordsOf } from "./index.ts";
import { groupsFor, inputSlice, isLong, optionalSlice, outputSlice } from "./lower.ts";

const ORDERED: readonly string[] = ["f32", "i32", "u32"];
/** Elements of a line that each are compared with all others. */
const MOST_ORDERED = 2 ** 16;

/** Kernels of `top_k`. */
export const gpuTopKKernels: readonly GpuKernel[] = [{
  name: "gpu_top_k",
  when({ node: { inputs: [x], attributes: { k, axis } } }) {
    const { length } = linesOf(x!, axis as number);
    return ORDERED.includes(x!.dtype) && typeof k === "number" && isStatic(length) &&
      k <= length && length <= MOST_ORDERED;
  },
  lower(lowering) {
    const { inputs: [x], outputs: [values, indices], attributes } = lowering.node;
    const { outer, length, inner } = linesOf(x!, attributes.axis as number);
    const blocks = ceilDiv(length, TOP_BLOCK), count = mul(mul(outer, inner), blocks);
    lowering.emit({
      shader: topKShader({
        type: x!.dtype as OrderedType,
        largest: attributes.largest as boolean,
        wide: indices!.dtype === "i64",
      }),
      storage: {
        x: inputSlice(lowering, 0),
        values: lowering.slice(values!),
        indices: lowering.slice(indices!),
      },
      uniforms: { count, blocks, length, inner, k: attributes.k as number },
      workgroups: [mul(count, Math.min(1, attributes.k as number))],
    });
  },
}];

/** Longest tuples. */
const MOST_DEPTH = 6;

/** Kernels of `gather_nd`. */
export const gpuGatherNdKernels: readonly GpuKernel[] = [{
  name: "gpu_gather_nd",
  when({ node: { inputs: [x, indices], attributes } }) {
    const depth = indices!.shape.at(-1), batch = attributes.batch_dims as number;
    return wordsOf(x!) !== undefined && isStatic(depth) && depth <= MOST_DEPTH &&
      areChecked(indices!, x!.shape.slice(batch, batch + depth));
  },
  lower(lowering) {
    const { inputs: [x, indices], outputs: [y], attributes } = lowering.node;
    const depth = indices!.shape.at(-1) as number, batch = attributes.batch_dims as number;
    const words = wordsOf(x!)!, inner = x!.shape.slice(batch), count = mul(countOf(y!), words);
    const strides = denseStrides(inner);
    lowering.emit({
      shader: gatherNdShader({ depth, wide: indices!.dtype === "i64" }),
      storage: {
        x: inputSlice(lowering, 0),
        indices: inputSlice(lowering, 1),
        y: outputSlice(lowering),
      },
      uniforms: {
        count,
        run: mul(product(inner.slice(depth)), words),
        tuples: product(indices!.shape.slice(batch, -1)),
        of_item: mul(product(inner), words),
        ...Object.fromEntries(
          inner.slice(0, depth).flatMap((size, dim) => [
            [`n${dim}`, size],
            [`s${dim}`, mul(strides[dim]!, words)],
          ]),
        ),
      },
      workgroups: groupsFor(count, GATHER_BLOCK),
    });
  },
}];

/** Kernels of `cumulative`. */
export const gpuCumulativeKernels: readonly GpuKernel[] = [{
  name: "gpu_cumulative",
  when: ({ node: { inputs: [x] } }) => ORDERED.includes(x!.dtype),
  lower(lowering) {
    const { inputs: [x], attributes: { kind, axis, exclusive, reverse } } = lowering.node;
    const { outer, length, inner } = linesOf(x!, axis as number), lines = mul(outer, inner);
    const long = isLong(length);
    lowering.emit({
      shader: cumulativeShader({
        long,
        type: x!.dtype as OrderedType,
        product: kind === "prod",
        exclusive: exclusive as boolean,
        reverse: reverse as boolean,
      }),
      storage: { x: inputSlice(lowering, 0), y: outputSlice(lowering) },
      uniforms: { lines, length, inner },
      workgroups: groupsFor(lines, long ? 1 : CUMULATIVE_BLOCK),
    });
  },
}];

/** The kernel of `pad` whose margins repeat the tensor. */
export const gpuPadKernel: GpuKernel = {
  name: "gpu_pad_repeat",
  when: ({ node }) =>
    node.attributes.mode !== "constant" && wordsOf(node.inputs[0]!) !== undefined &&
    // An empty dim has nothing to repeat: the reference says so.
    node.inputs[0]!.shape.every((size) => boundsOf(size).min > 0) &&
    padAxes(node).length <= PAD_RANK,
  lower(lowering) {
    const { node } = lowering, axes = padAxes(node), words = wordsOf(node.inputs[0]!)!;
    const first = PAD_RANK - axes.length, count = mul(countOf(node.outputs[0]!), words);
    const uniforms = Array.from({ length: PAD_RANK }, (_, dim) => {
      const { size = 1, before = 0, out = 1 } = axes[dim - first] ?? {};
      return [[`n${dim}`, size], [`before${dim}`, before], [`out${dim}`, out]] as const;
    });
    lowering.emit({
      shader: padShader(node.attributes.mode as PadMode),
      storage: { x: inputSlice(lowering, 0), y: outputSlice(lowering) },
      uniforms: { count, words, ...Object.fromEntries(uniforms.flat()) },
      workgroups: groupsFor(count, PAD_BLOCK),
    });
  },
};

/** Whether every row has a position, or an item's first, or none; undefined where they are not checked before. */
function positionsOf({ inputs: [, , , positions] }: Node): "rows" | "first" | "none" | undefined {
  if (!positions) return "none";
  if (positions.role !== "input") return undefined;
  return equal(product(positions.shape), 1) ? "first" : "rows";
}

/** The kernel of `rope` of heads in tensors. */
export const gpuRotaryKernel: GpuKernel = {
  name: "gpu_rotary_f32",
  when({ node }) {
    const { inputs: [x, cos, sin], attributes } = node;
    if (attributes.heads === 0) return false;
    const { width } = heads(x!.shape, attributes.heads as number), half = cos!.shape.at(-1)!;
    return areFloat32([x, cos, sin]) && cos !== sin && isStatic(width) && isStatic(half) &&
      2 * half <= width && positionsOf(node) !== undefined;
  },
  lower(lowering) {
    const { node } = lowering, { inputs: [x, cos, , positions], attributes } = node;
    const count = countOf(x!), own = attributes.heads as number;
    const { rows, width, joined } = heads(x!.shape, own) as Layout<Dim>;
    lowering.emit({
      shader: rotaryShader({
        joined,
        interleaved: attributes.style === "interleaved",
        positions: positionsOf(node)!,
      }),
      storage: {
        x: inputSlice(lowering, 0),
        cosines: inputSlice(lowering, 1),
        sines: inputSlice(lowering, 2),
        ...optionalSlice(lowering, { name: "positions", index: 3 }),
        y: outputSlice(lowering),
      },
      uniforms: {
        ...{ count, heads: own, width, rows, pairs: cos!.shape.at(-1)! },
        entries: product(cos!.shape.slice(0, -1)),
        words: positions?.dtype === "i64" ? 2 : 1,
      },
      workgroups: groupsFor(count, ROTARY_BLOCK),
    });
  },
};
