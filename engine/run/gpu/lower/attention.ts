// The WebGPU kernels of attention. Rows of a step that come out of their product (`style`) are one row alone, which is
// what decoding is made of: one dispatch where contexts are short and two where they are long, its queries rotated where
// they are attended with, its key and value stored on the way (gpu/kernels/attention/fresh.ts). More rows, and heads that
// subgroups cannot walk over, are stored first.

import type { GpuSlice } from "../../../../gpu/kernel.ts";
import { canRotate, type FreshRow } from "../../../../gpu/kernels/attention/fresh.ts";
import type { HeadShape, SharedMemory } from "../../../../gpu/kernels/attention/heads.ts";
import { rowsRule, type SpanRule, tensorRule } from "../../../../gpu/kernels/attention/spans.ts";
import type { SplitStyle } from "../../../../gpu/kernels/attention/tuning.ts";
import { type Dim, min, mul } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { attentionInputs } from "../../../ops/attention_inputs.ts";
import { layoutsOf } from "../../../ops/attention_rows.ts";
import { maskStrides } from "../../../ops/attention_shapes.ts";
import { isStatic } from "../../wasm/lower/lower.ts";
import type { GpuKernel, GpuKernelContext, GpuLowering } from "../kernel.ts";
import { canRopeAppend, emitRopeAppend, queryHeads } from "./append.ts";
import {
  type AttentionCall,
  canAttend,
  canQuantizeHeads,
  lowerAttention,
  lowerFew,
} from "./attention_dispatches.ts";
import { isBetween } from "./choice.ts";
import { areWide } from "./tensor_attention.ts";

/** How rows become attended heads: a row alone in one go, or by way of the caches. */
type Way = "fresh" | SplitStyle;

function attentionKernel(way: Way): GpuKernel {
  const style = way === "fresh" ? "subgroup" : way;
  return {
    name: `gpu_attention_${way}`,
    when: (context) => canRun(context, way, style),
    lower(lowering) {
      const { attributes } = lowering.node;
      if (attributes.q_heads !== 0) lowerAttention(lowering, callOfTensors(lowering, style));
      else if (attributes.style !== "none") lowerRotated(lowering, way, style);
      else lowerAttention(lowering, callOfRows(lowering, style));
    },
  };
}

/** Name of the kernel that takes a row otherwise where it is alone in its step. */
export const LONE_ROW_KERNEL = "gpu_attention_fresh";

/** Attention, a row alone from its product first. */
export const gpuAttentionKernels: readonly GpuKernel[] = [
  ...["fresh", "subgroup", "workgroup"] as const,
].map(attentionKernel);

function canRun({ node, capabilities }: GpuKernelContext, way: Way, style: SplitStyle): boolean {
  const { inputs, attributes } = node, { k, v, bias, rows, ...more } = attentionInputs(inputs);
  const isRotated = attributes.style !== "none";
  if (attributes.q_heads !== 0) {
    return way !== "fresh" && suitsTensors(node) && !areWide(node, capabilities) &&
      canAttend(shapeOfTensors(node), { style, capabilities });
  }
  if (isRotated ? !canRopeAppend(node) : way === "fresh") return false;
  // A span begins where its distances are counted from.
  if (bias && attributes.window !== 0) return false;
  if (k?.dtype !== v?.dtype) return false;
  const shape = shapeOfRows(node), isCached = attentionInputs(inputs).slots !== undefined;
  if (![shape.heads, shape.kvHeads, shape.width, shape.valueWidth].every(isStatic)) return false;
  if (isCached && !isStatic(k!.shape[0])) return false;
  if (attributes.to === "q8" && !canQuantizeHeads(shape.valueWidth, style, capabilities)) {
    return false;
  }
  if (!canAttend(shape, { style, capabilities })) return false;
  const { sinks, slopes, positions, slots } = more, { maxStorageBindings } = capabilities;
  const beside = [k, v, bias, rows, sinks, slopes, positions, slots].filter((value) => value);
  if (rows && beside.length + 2 > maxStorageBindings) return false;
  // A row that is alone is the one that is picked.
  const bindings = inputs.filter((value) => value && value !== rows).length + 1;
  return way !== "fresh" ||
    canRotate(freshRow(node), shape) && bindings <= maxStorageBindings;
}

function shapeOfRows(node: Node): HeadShape {
  const [q, k, v] = node.inputs as [Value, Value, Value], { kv_heads } = node.attributes;
  if (kv_heads !== 0) {
    const [, all, width] = q.shape as [Dim, number, number], kvHeads = kv_heads as number;
    const sizes = { heads: all - 2 * kvHeads, kvHeads, width, valueWidth: width };
    return { ...sizes, dtype: "f32", memory: { k: "q", v: "q" } };
  }
  const [, kvHeads, width] = k.shape as [Dim, number, number];
  return {
    heads: node.attributes.style === "none" ? q.shape[1] as number : queryHeads(node),
    ...{ kvHeads, width, valueWidth: v.shape[2] as number, dtype: k.dtype as HeadShape["dtype"] },
  };
}

/** Ranges by name; absent values are left out. */
function slices(
  { slice }: GpuLowering,
  values: Readonly<Record<string, Value | undefined>>,
): Record<string, GpuSlice> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => value ? [[name, slice(value)]] : []),
  );
}

/**
 * Rows of a step.
 *
 * @param queries Where queries lie that are none of the inputs.
 * @param isFresh Whether a row alone comes out of its product; it is the one that is picked, if there are some.
 */
function callOfRows(
  lowering: GpuLowering,
  style: SplitStyle,
  { queries, isFresh = false }: { queries?: GpuSlice; isFresh?: boolean } = {},
): AttentionCall {
  const { node: { inputs, attributes }, apart = 0 } = lowering;
  const { q, k, v, sinks, slopes, starts, ends, bias, ...others } = attentionInputs(inputs);
  const { scale, softcap, window } = attributes as Record<string, number>;
  // Positions count only where something is measured from them.
  const isMeasured = !ends || bias || slopes || window! > 0;
  const positions = isMeasured ? others.positions : undefined, { slots } = others;
  const picked = isFresh ? undefined : others.rows;
  const [rows] = (picked ?? q)!.shape,
    [limit] = (k ?? q)!.shape,
    shape = shapeOfRows(lowering.node);
  const known = typeof limit === "number" ? limit : undefined;
  const source = slots ? lowering.state : lowering.slice;
  const mergeStorage = slices(lowering, { starts, ends, positions, slots, slopes, bias, picked });
  return {
    ...{ shape, style, rows: rows!, least: 1, mergeStorage },
    rule: rowsRule({
      ...{ scale: scale!, softcap: softcap!, window: window!, leavesOwnKey: isFresh },
      pages: lowering.pages,
      packed: k ? undefined : shape,
      picked: picked && shape.heads,
      slopes: slopes !== undefined,
      starts: starts !== undefined,
      ends: ends !== undefined,
      positions: positions !== undefined,
      reach: bias && ((bias.shape[1] as number) - 1) / 2,
    }),
    keys: slots && window! > 0 ? Math.min(window!, known!) : known,
    ...slots && !ends && !bias &&
      { reach: lowering.reach, apart: picked ? min(apart, rows!) : apart },
    storage: {
      ...{ q: queries ?? lowering.slice(q!), ...k && v && { k: source(k), v: source(v) } },
      ...{ ...slices(lowering, { sinks }), ...mergeStorage },
    },
    sinks: sinks !== undefined,
    quantized: attributes.to === "q8",
  };
}

function freshRow({ inputs, attributes }: Node): FreshRow {
  const { table, query_norm, key_norm, new_k } = attentionInputs(inputs);
  return {
    pairs: (table!.shape[1] as number) / 2,
    interleaved: attributes.style === "interleaved",
    hasQueryNorm: query_norm !== undefined,
    hasKeyNorm: key_norm !== undefined,
    epsilon: attributes.epsilon as number,
    base: attributes.base as number,
    isApart: new_k !== undefined,
  };
}

function lowerRotated(lowering: GpuLowering, way: Way, style: SplitStyle): void {
  const { node, most, scratch } = lowering, { heads, width } = shapeOfRows(node);
  const { q: qkv, table, query_norm, key_norm, new_k, new_v } = attentionInputs(node.inputs);
  const rows = qkv!.shape[0]!;
  const queries = scratch(4 * most(rows) * heads * width);
  const one = way === "fresh" ? isBetween(rows, { least: 1, most: 1 }) : 0;
  if (one !== 0) {
    const call = callOfRows(lowering, style, { queries, isFresh: true });
    const { q: _, ...storage } = call.storage;
    const own = slices(lowering, { qkv, table, query_norm, key_norm, new_k, new_v });
    const fresh = { fresh: freshRow(node), storage: { ...own, ...storage } };
    lowerFew(lowering, { call: { ...call, ...fresh }, rows: one });
  }
  const least = way === "fresh" ? 2 : 1;
  const areMore = isBetween(rows, { least, most: Infinity }), others = mul(areMore, rows);
  if (others === 0) return;
  emitRopeAppend(lowering, { queries, rows: others });
  const call = callOfRows(lowering, style, { queries });
  lowerAttention(lowering, { ...call, ...call.rows === rows ? { least } : { where: areMore } });
}

/** Whether heads lie in tensors of floats that kernels of tiles and queries read. */
export function suitsTensors(node: Node): boolean {
  const { inputs, attributes } = node;
  const { mask, sinks, new_k, q, k, v } = attentionInputs(inputs);
  const layouts = layoutsOf(node.inputs, node.attributes);
  return !new_k && attributes.scores === "none" && attributes.to === "f32" &&
    [q, k, v, sinks].every((value) => !value || value.dtype === "f32") &&
    [layouts.q.width, layouts.v.width].every(isStatic) &&
    (!mask || mask.shape.length <= 4 && ["f32", "bool"].includes(mask.dtype));
}

/** Sizes of heads that lie in tensors. */
export function shapeOfTensors(node: Node): HeadShape {
  const { q, v } = layoutsOf(node.inputs, node.attributes);
  const { q_heads, kv_heads } = node.attributes as Record<"q_heads" | "kv_heads", number>;
  return {
    ...{ heads: q_heads, kvHeads: kv_heads, dtype: "f32" },
    ...{ width: q.width as number, valueWidth: v.width as number },
  };
}

function ruleOfTensors(node: Node): SpanRule {
  const { k, mask, key_counts } = attentionInputs(node.inputs), { attributes } = node;
  const { q, k: keys, v } = layoutsOf(node.inputs, node.attributes),
    { heads, kvHeads } = shapeOfTensors(node);
  const { scale, softcap, window } = attributes as Record<string, number>;
  return tensorRule({
    ...{ heads, kvHeads, scale: scale!, softcap: softcap!, window: window! },
    causal: attributes.causal === true,
    fromEnd: attributes.from_end === true,
    countWords: !key_counts ? 0 : key_counts.dtype === "i64" ? 2 : 1,
    mask: !mask ? "none" : mask.dtype === "bool" ? "truths" : "added",
    planes: { q: !q.joined, k: !keys.joined, v: !v.joined },
    packed: k === undefined,
    spoilt: attributes.unseen === "nan",
  });
}

/** An attention over tensors. */
export function callOfTensors(lowering: GpuLowering, style: SplitStyle): AttentionCall {
  const { node } = lowering;
  const { q, k, v, mask, key_counts: counts, sinks } = attentionInputs(node.inputs);
  const layouts = layoutsOf(node.inputs, node.attributes),
    { batch, rows } = layouts.q,
    keys = layouts.k.rows;
  const mergeStorage = slices(lowering, { counts, mask });
  const { memory, storage } = headMemory(lowering, [q!, k ?? q!, v ?? q!]);
  return {
    shape: { ...shapeOfTensors(node), memory },
    ...{ style, rows: mul(batch, rows), least: 1, rule: ruleOfTensors(node) },
    uniforms: {
      ...{ item_rows: rows, keys, offset: node.attributes.offset as Dim },
      ...mask && maskStrides(mask.shape),
    },
    keys: typeof keys === "number" ? keys : undefined,
    reach: keys,
    storage: { ...storage, ...slices(lowering, { sinks }), ...mergeStorage },
    ...{ mergeStorage, sinks: sinks !== undefined, quantized: false },
  };
}

/** Views may lie in the same memory, and so do heads of one tensor: it is bound once. */
function headMemory(
  { slice }: GpuLowering,
  values: readonly [Value, Value, Value],
): { readonly memory: SharedMemory; readonly storage: Record<string, GpuSlice> } {
  const names = ["q", "k", "v"] as const, found = values.map(slice);
  const first = found.map(({ buffer, offset }) =>
    found.findIndex((other) => other.buffer === buffer && other.offset === offset)
  );
  // A copy is not known to be the memory of this input, so other nodes are not lowered like this one.
  const isOwn = first.every((at, i) => at === i || values[at] === values[i]);
  const own = names.flatMap((name, i) =>
    first[i] === i ? [[name, isOwn ? found[i]! : { ...found[i]! }] as const] : []
  );
  return {
    memory: { k: names[first[1]!] as "q" | "k", v: names[first[2]!]! },
    storage: Object.fromEntries(own),
  };
}
