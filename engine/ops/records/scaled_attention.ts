// scaled_attention: softmax(cap(q·kᵀ·scale) + mask)·v over keys that are inputs, for ONNX's Attention,
// MultiHeadAttention and GroupQueryAttention alike. Query head h reads key-value head ⌊h / (H / Hkv)⌋.
// What a row may not see is decided by four things together: the mask, the number of valid keys of an
// item, causality and a window. Sessions of a Model use `attention`, whose keys are states.

import { choice, dim, flag, integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { add, type Dim, evaluate, exactDiv, formatDim, mul } from "../../graph/dim/mod.ts";
import type { TensorType } from "../../graph/graph.ts";
import { FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import { attentionCases } from "../scaled_attention_cases.ts";
import {
  appended,
  attendRows,
  heads,
  type Layout,
  type Operand,
  unpacked,
} from "../scaled_attention_rows.ts";
import {
  checkInputCount,
  optionalInput,
  refuseMisfit,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** What the second output holds: products, products after the cap, with the mask added, or weights. */
const SCORE_KINDS = ["none", "products", "capped", "masked", "weights"] as const;

/** Where new keys stand: behind all others, or behind those of them that `key_counts` leaves valid. */
const NEW_ROWS = ["behind_all", "behind_valid"] as const;

const UNSEEN = ["zeros", "nan"] as const;

/**
 * (q, k?, v?, mask [… of B, H, S, T]?, key_counts i32|i64[B]?, sinks [H]?, new_k?, new_v?) →
 * (like q, [B, H, S, T]?).
 *
 * New keys and values may come in tensors of their own, so that a cache need not be copied to be appended to
 * (spec TL-12); T counts them, and so do `key_counts`.
 * q, k and v are [B, heads, rows, width] or [B, rows, heads · width] each. Without k and v, q holds all three,
 * [B, rows, (q_heads + 2 · kv_heads) · width]: queries, keys, values, as one product makes them. A mask is boolean (true:
 * seen) or added; where it has fewer columns than there are keys, the rest is not seen. With `causal`
 * row s sees keys up to s + offset, or up to s + (key_counts - S) with `from_end`.
 */
export const scaledAttention: OpRecord = defineOp({
  name: "scaled_attention",
  summary: "softmax(q·kᵀ·scale + mask)·v",
  attributes: {
    q_heads: integer(1),
    kv_heads: integer(1),
    scale: number(),
    softcap: number(0),
    causal: flag(false),
    offset: dim(0),
    from_end: flag(false),
    /** Keys that a row sees at most, its own included; 0: all. */
    window: integer(0, 0),
    scores: choice(SCORE_KINDS, "none"),
    new_rows: choice(NEW_ROWS, "behind_all"),
    /** What a row is whose keys are all masked; a softmax by itself gives NaN. */
    unseen: choice(UNSEEN, "zeros"),
  },
  infer(inputs, attributes) {
    checkInputCount(inputs, 8);
    const packed = isPacked(inputs);
    const all = attributes.q_heads + 2 * attributes.kv_heads;
    const q = requireHeads(inputs, 0, "q", packed ? all : attributes.q_heads);
    const k = packed ? q : requireHeads(inputs, 1, "k", attributes.kv_heads);
    const v = packed ? q : requireHeads(inputs, 2, "v", attributes.kv_heads);
    if (packed && (!q.joined || inputs[6] || inputs[7])) {
      throw new TypeError(
        "queries, keys and values in one tensor are rows, without new ones beside",
      );
    }
    const mask = optionalInput(inputs, 3, "mask", { dtype: ["bool", ...FLOATS] });
    const counts = optionalInput(inputs, 4, "key_counts", { dtype: ["i32", "i64"], rank: 1 });
    const sinks = optionalInput(inputs, 5, "sinks", { dtype: FLOATS, rank: 1 });
    const scores = [q.batch, attributes.q_heads, q.rows];
    mask?.shape.slice(-4, -1).forEach((size, i, { length }) =>
      refuseMisfit(size, [1, scores[3 - length + i]!], `dim ${i} of the mask`)
    );
    if (counts) refuseMisfit(counts.shape[0]!, [q.batch], "the number of key_counts");
    if (sinks) refuseMisfit(sinks.shape[0]!, [attributes.q_heads], "the number of sinks");
    requireEqual(q.batch, k.batch, "the batches of q and k");
    requireEqual(k.batch, v.batch, "the batches of k and v");
    requireEqual(k.rows, v.rows, "the rows of k and v");
    requireEqual(q.width, k.width, "the head widths of q and k");
    const fresh = newHeads(inputs, attributes.kv_heads, { k, v });
    if (attributes.new_rows === "behind_valid" && (!fresh || !inputs[4])) {
      throw new TypeError("new rows behind the valid keys need new_k, new_v and key_counts");
    }
    if (attributes.q_heads % attributes.kv_heads !== 0) {
      throw new RangeError(
        `${attributes.q_heads} heads of q: must be a multiple of the ${attributes.kv_heads} of k`,
      );
    }
    const { dtype, shape } = inputs[0]!;
    const out = shape.length === 4
      ? [q.batch, attributes.q_heads, q.rows, v.width]
      : [q.batch, q.rows, mul(v.width, attributes.q_heads)];
    const result = { dtype, shape: out };
    if (attributes.scores === "none") return [result];
    return [result, {
      dtype,
      shape: [q.batch, attributes.q_heads, q.rows, add(k.rows, fresh?.rows ?? 0)],
    }];
  },
  reference({ inputs, outputs: [out, scores], attributes, env }) {
    const [q, k, v, mask, counts, sinks, newK, newV] = inputs;
    const { q_heads, kv_heads } = attributes;
    const operand = (tensor: HostTensor, count: number): Operand => ({
      values: numbersOf(tensor),
      layout: heads(tensor.shape, count) as Layout<number>,
    });
    const parts = k && v ? undefined : unpacked(operand(q!, q_heads + 2 * kv_heads), [
      ...[q_heads, kv_heads, kv_heads],
    ]);
    const valid = counts && numbersOf(counts);
    const starts = attributes.new_rows === "behind_valid" ? valid : undefined;
    const whole = (tensor: HostTensor, fresh: HostTensor | undefined) => {
      const before = operand(tensor, kv_heads);
      return fresh ? appended(before, operand(fresh, kv_heads), starts) : before;
    };
    const y = new Float64Array(out!.data.length);
    const seen = new Float64Array(scores?.data.length ?? 0);
    attendRows({
      ...attributes,
      offset: evaluate(attributes.offset, env),
      q: parts?.[0] ?? operand(q!, q_heads),
      k: parts?.[1] ?? whole(k!, newK),
      v: parts?.[2] ?? whole(v!, newV),
      out: { values: y, layout: heads(out!.shape, q_heads) as Layout<number> },
      mask,
      counts: valid,
      sinks: sinks && numbersOf(sinks),
      seen,
    });
    storeNumbers(out!, y);
    if (scores) storeNumbers(scores, seen);
  },
  cases: attentionCases,
  tolerance: { ofLargest: 1e-4, reason: "float32 exponentials of long rows" },
});

/** Whether q holds keys and values too. */
function isPacked(inputs: readonly unknown[]): boolean {
  return inputs[1] === undefined && inputs[2] === undefined;
}

function requireHeads(
  inputs: readonly (TensorType | undefined)[],
  index: number,
  name: string,
  count: number,
): Layout<Dim> {
  const input = requireInput(inputs, index, name, { dtype: FLOATS, minRank: 3 });
  if (input.shape.length > 4) throw new RangeError(`${name} must have 3 or 4 dims`);
  if (input.shape.length === 4) requireEqual(input.shape[1]!, count, `the heads of ${name}`);
  else if (exactDiv(input.shape[2]!, count) === undefined) {
    throw new RangeError(
      `${name} has rows of ${formatDim(input.shape[2]!)}: must be a multiple of ${count} heads`,
    );
  }
  return heads(input.shape, count);
}

/** The rows of new keys and values, which fit those before them. */
function newHeads(
  inputs: readonly (TensorType | undefined)[],
  count: number,
  { k, v }: { readonly k: Layout<Dim>; readonly v: Layout<Dim> },
): Layout<Dim> | undefined {
  if (!inputs[6] && !inputs[7]) return undefined;
  const newK = requireHeads(inputs, 6, "new_k", count);
  const newV = requireHeads(inputs, 7, "new_v", count);
  requireEqual(newK.rows, newV.rows, "the rows of new_k and new_v");
  for (const [fresh, before, name] of [[newK, k, "k"], [newV, v, "v"]] as const) {
    requireEqual(fresh.batch, before.batch, `the batches of new_${name} and ${name}`);
    requireEqual(fresh.width, before.width, `the head widths of new_${name} and ${name}`);
  }
  return newK;
}
