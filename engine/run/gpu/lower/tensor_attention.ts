// The WebGPU kernel of attention over tensors where the tiles of gpu/kernels/attention/tile.ts do not suit: new rows in
// tensors of their own beside a cache, and heads so wide that a tile of them would hold few queries.

import {
  HEAD_INPUTS,
  TENSOR_ROWS,
  tensorAttentionShader,
} from "../../../../gpu/kernels/attention/tensors.ts";
import { tileSizes } from "../../../../gpu/kernels/attention/tuning.ts";
import { MINUS_INFINITY_BITS } from "../../../../gpu/kernels/reduce_lines.ts";
import type { Capabilities, GpuSlice } from "../../../../gpu/kernel.ts";
import { add, ceilDiv, type Dim, equal, mul } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { type AttentionInput, attentionInputs } from "../../../ops/attention_inputs.ts";
import { heads, type Layout, layoutsOf } from "../../../ops/attention_rows.ts";
import { maskStrides } from "../../../ops/attention_shapes.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { isStatic } from "../../wasm/lower/lower.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";
import { outputSlice } from "./lower.ts";

/** Columns of values that invocations can hold sums of. */
const MOST_COLUMNS = 512;
/** Queries of a tile that is worth its while. */
const FEW_QUERIES = 16;

/** Attention over tensors, of any width. */
export const tensorAttentionKernel: GpuKernel = {
  name: "gpu_attention_tensors",
  when({ node, capabilities: { maxStorageBindings } }) {
    const { inputs, attributes } = node;
    if (attributes.q_heads === 0) return false;
    const { q, k, v, mask, sinks, new_k } = attentionInputs(inputs);
    const { q: { width }, v: { width: valueWidth } } = layoutsOf(inputs, attributes);
    const given = new Set(inputs.filter((value) => value !== undefined));
    return attributes.scores === "none" && attributes.to === "f32" &&
      // Where new rows stand is checked by WASM, where counts are computed.
      attributes.new_rows === "behind_all" &&
      areFloat32([q, k, v, sinks, new_k].filter((value) => value)) &&
      isStatic(width) && isStatic(valueWidth) && valueWidth <= MOST_COLUMNS &&
      (!mask || mask.shape.length <= 4 && ["f32", "bool"].includes(mask.dtype)) &&
      given.size + 1 <= maxStorageBindings;
  },
  lower: lowerTensors,
};

/** Whether there are many rows of heads of which a tile would hold few. */
export function areWide(
  { inputs, attributes }: Node,
  { maxWorkgroupBytes }: Capabilities,
): boolean {
  const { q, k, v } = layoutsOf(inputs, attributes);
  const tile = tileSizes({
    ...{ heads: q.heads, kvHeads: k.heads, dtype: "f32" },
    ...{ width: q.width as number, valueWidth: v.width as number },
  }, maxWorkgroupBytes);
  const isLong = typeof q.rows === "number" && q.rows >= TENSOR_ROWS;
  return isLong && (tile?.queries ?? 0) < FEW_QUERIES && v.width as number <= MOST_COLUMNS;
}

function lowerTensors(lowering: GpuLowering): void {
  const { node: { inputs, outputs: [y], attributes }, slice } = lowering;
  const { mask, key_counts: counts, sinks, ...given } = attentionInputs(inputs);
  const { q_heads, kv_heads } = attributes as Record<"q_heads" | "kv_heads", number>;
  const { q, k, v } = layoutsOf(inputs, attributes);
  const fresh = given.new_k && heads(given.new_k.shape, kv_heads);
  const isPacked = !given.k;
  const { variables, storage } = headStorage(lowering);
  const width = q.width as number, valueWidth = v.width as number;
  const result = heads(y!.shape, q_heads);
  const keys = add(k.rows, fresh?.rows ?? 0);
  lowering.emit({
    shader: tensorAttentionShader({
      ...{ width, valueWidth, heads: variables, hasSinks: sinks !== undefined },
      mask: mask && (mask.dtype === "bool" ? "bool" : "f32"),
      counts: counts && (counts.dtype === "i64" ? "pair" : "i32"),
    }),
    storage: {
      ...storage,
      ...mask && { mask: slice(mask) },
      ...counts && { counts: slice(counts) },
      ...sinks && { sinks: slice(sinks) },
      y: outputSlice(lowering),
    },
    uniforms: {
      ...{ rows: q.rows, keys, held: k.rows, group: q_heads / kv_heads },
      ...steps("q", q),
      ...steps("k", k, isPacked ? q_heads : 0),
      ...steps("v", v, isPacked ? q_heads + kv_heads : 0),
      ...fresh && steps("new_k", fresh),
      ...given.new_v && steps("new_v", heads(given.new_v.shape, kv_heads)),
      ...steps("y", result),
      ...maskUniforms(mask, keys),
      causal: attributes.causal ? 1 : 0,
      from_end: attributes.from_end ? 1 : 0,
      offset: attributes.offset as Dim,
      window: attributes.window as number,
      scale: attributes.scale as number,
      softcap: attributes.softcap as number,
      least: MINUS_INFINITY_BITS,
      blind: attributes.unseen === "nan" ? NAN_BITS : 0,
    },
    workgroups: [ceilDiv(q.rows, TENSOR_ROWS), q_heads, q.batch],
  });
}

const NAN_BITS = 0x7fc00000;

/** Where the heads of an input begin, and how far its items, heads and rows are apart. */
function steps(
  name: string,
  { heads: count, rows, width, joined }: Layout<Dim>,
  first = 0,
): Record<string, Dim> {
  const row = joined ? mul(width, count) : width;
  return {
    [`${name}_at`]: mul(width, first),
    [`${name}_batch`]: mul(mul(width, count), rows),
    [`${name}_head`]: joined ? width : mul(width, rows),
    [`${name}_row`]: row,
  };
}

function maskUniforms(mask: Value | undefined, keys: Dim): Record<string, Dim> {
  const { mask_columns: columns, ...others } = maskStrides(mask?.shape);
  const isOne = equal(columns, 1);
  return { ...others, mask_key: isOne ? 0 : 1, mask_columns: isOne ? keys : columns };
}

/** Views may lie in the same memory, and so do heads of one tensor: it is bound once. */
function headStorage({ node, slice }: GpuLowering): {
  readonly variables: Record<string, string>;
  readonly storage: Record<string, GpuSlice>;
} {
  const inputs = attentionInputs(node.inputs);
  const variables: Record<string, string> = {}, storage: Record<string, GpuSlice> = {};
  const values = new Map<string, Value>();
  for (const name of HEAD_INPUTS) {
    const value = inputs[name as AttentionInput];
    if (!value) continue;
    const own = slice(value);
    const same = Object.keys(storage).find((other) =>
      storage[other]!.buffer === own.buffer && storage[other]!.offset === own.offset
    );
    variables[name] = same ?? name;
    if (same === undefined) storage[name] = own;
    // A copy is not known to be the memory of this input, so other nodes are not lowered like this one.
    else if (values.get(same) !== value) storage[same] = { ...storage[same]! };
    values.set(name, value);
  }
  if (!inputs.k) variables.k = variables.v = "q";
  return { variables, storage };
}
