// The WebGPU kernels of rope_attention. One row, which is what decoding is made of, takes one dispatch where contexts are
// short and two where they are long: its queries are rotated where they are attended with, its key and value stored on
// the way (gpu/kernels/attention/fresh.ts). More rows, and heads that subgroups cannot walk over, are what rope_append
// and attention make of them.

import type { GpuSlice } from "../../../../gpu/kernel.ts";
import { canRotate, type FreshRow } from "../../../../gpu/kernels/attention/fresh.ts";
import type { HeadShape } from "../../../../gpu/kernels/attention/split.ts";
import type { SplitStyle } from "../../../../gpu/kernels/attention/tuning.ts";
import type { GpuKernel, GpuKernelContext, GpuLowering } from "../kernel.ts";
import { mul } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import {
  type AttentionCall,
  canAttend,
  canQuantizeHeads,
  causal,
  lowerAttention,
  lowerFew,
  slices,
} from "./attention.ts";
import { isBetween } from "./choice.ts";
import { canRopeAppend, emitRopeAppend, queryHeads } from "./rope_append.ts";

/** How rows become attended heads: a row alone in one go, or by way of the caches. */
type Way = "fresh" | SplitStyle;

function shapeOf(node: Node): HeadShape {
  const [, , keys] = node.inputs;
  const [, kvHeads, width] = keys!.shape as [number, number, number];
  const dtype = keys!.dtype as "f32" | "f16";
  return { heads: queryHeads(node), kvHeads, width, valueWidth: width, dtype };
}

function freshRow({ inputs, attributes }: Node): FreshRow {
  const [, table, , , , , queryNorm, keyNorm, k] = inputs;
  return {
    pairs: (table!.shape[1] as number) / 2,
    interleaved: attributes.style === "interleaved",
    hasQueryNorm: queryNorm !== undefined,
    hasKeyNorm: keyNorm !== undefined,
    epsilon: attributes.epsilon as number,
    base: attributes.base as number,
    isApart: k !== undefined,
  };
}

/** Memory that the kernel for one row binds, at most. */
function bindingsOf({ inputs }: Node): number {
  return inputs.filter((value) => value !== undefined).length + 1;
}

function canRun({ node, capabilities }: GpuKernelContext, way: Way, quantized: boolean): boolean {
  if (!canRopeAppend(node)) return false;
  const shape = shapeOf(node), style = way === "fresh" ? "subgroup" : way;
  if (quantized && !canQuantizeHeads(shape.width, style, capabilities)) return false;
  if (!canAttend(shape, style, capabilities)) return false;
  return way !== "fresh" ||
    canRotate(freshRow(node)) && bindingsOf(node) <= capabilities.maxStorageBindings;
}

function callOf(lowering: GpuLowering, q: GpuSlice, quantized: boolean): AttentionCall {
  const { node, state, slice } = lowering;
  const [qkv, , keys, values, positions, slots, , , , , sinks, slopes] = node.inputs;
  return {
    ...{ shape: shapeOf(node), rows: qkv!.shape[0]!, least: 1, q, quantized },
    ...causalOf(node, false),
    k: state(keys!),
    v: state(values!),
    ruleStorage: slices(lowering, { positions, slots, slopes }),
    sinks: sinks && slice(sinks),
  };
}

function causalOf(
  { inputs, attributes }: Node,
  leavesOwnKey: boolean,
): Pick<AttentionCall, "rule" | "keys" | "isCausal"> {
  const capacity = inputs[2]!.shape[0] as number;
  return causal(attributes, { capacity, slopes: inputs[11] !== undefined, leavesOwnKey });
}

/** One row, from its product. */
function lowerFresh(lowering: GpuLowering, call: AttentionCall): void {
  const { node } = lowering;
  const [qkv, table, , , , , query_norm, key_norm, new_k, new_v] = node.inputs;
  const one = isBetween(call.rows, 1, 1);
  if (one === 0) return;
  lowerFew(lowering, { ...call, ...causalOf(node, true) }, "subgroup", one, {
    row: freshRow(node),
    storage: slices(lowering, { qkv, table, query_norm, key_norm, new_k, new_v }),
  });
}

function ropeAttentionKernel(way: Way, quantized: boolean): GpuKernel {
  return {
    name: `gpu_rope_attention_${quantized ? "q8_" : ""}${way}`,
    when: (context) => canRun(context, way, quantized),
    lower(lowering) {
      const { node, most, scratch } = lowering;
      const { heads, width } = shapeOf(node);
      const rows = node.inputs[0]!.shape[0]!;
      const queries = scratch(4 * most(rows) * heads * width);
      const call = callOf(lowering, queries, quantized);
      const least = way === "fresh" ? 2 : 1;
      if (way === "fresh") lowerFresh(lowering, call);
      const others = mul(isBetween(rows, least, Infinity), rows);
      if (others === 0) return;
      emitRopeAppend(lowering, node, { queries, rows: others });
      lowerAttention(lowering, { ...call, least }, way === "fresh" ? "subgroup" : way);
    },
  };
}

const WAYS = ["fresh", "subgroup", "workgroup"] as const;

/** Attention of heads that come out of a product, with floats as result. */
export const gpuRopeAttentionKernels: readonly GpuKernel[] = WAYS.map((way) =>
  ropeAttentionKernel(way, false)
);
/** The same with a result in 8 bit. */
export const gpuRopeAttentionQ8Kernels: readonly GpuKernel[] = WAYS.map((way) =>
  ropeAttentionKernel(way, true)
);
