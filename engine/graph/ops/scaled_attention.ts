// scaled_attention: softmax(cap(q·kᵀ·scale) + mask)·v over keys that are inputs, for ONNX's Attention,
// MultiHeadAttention and GroupQueryAttention alike. Query head h reads key-value head ⌊h / (H / Hkv)⌋.
// What a row may not see is decided by four things together: the mask, the number of valid keys of an
// item, causality and a window. Sessions of a Model use `attention`, whose keys are states.

import { choice, dim, flag, integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { type Dim, evaluate, exactDiv, formatDim, mul } from "../dim.ts";
import { FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import { attendRows, heads, type Layout } from "../scaled_attention_rows.ts";
import { scaledAttentionKernel } from "../lower_scaled_attention.ts";
import type { OpRecord, TensorType } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import { checkInputCount, optionalInput, requireEqual, requireInput } from "../shape_rules.ts";

/** What the second output holds: products, products after the cap, with the mask added, or weights. */
export const SCORE_KINDS = ["none", "products", "capped", "masked", "weights"] as const;

/**
 * (q, k, v, mask [… of B, H, S, T]?, key_counts i32|i64[B]?, sinks [H]?) → (like q, [B, H, S, T]?).
 *
 * q, k and v are [B, heads, rows, width] or [B, rows, heads · width] each. A mask is boolean (true:
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
  },
  infer(inputs, attributes) {
    checkInputCount(inputs, 6);
    const q = requireHeads(inputs, 0, "q", attributes.q_heads);
    const k = requireHeads(inputs, 1, "k", attributes.kv_heads);
    const v = requireHeads(inputs, 2, "v", attributes.kv_heads);
    optionalInput(inputs, 3, "mask", { dtype: ["bool", ...FLOATS] });
    optionalInput(inputs, 4, "key_counts", { dtype: ["i32", "i64"], rank: 1 });
    optionalInput(inputs, 5, "sinks", { dtype: FLOATS, rank: 1 });
    requireEqual(q.batch, k.batch, "the batches of q and k");
    requireEqual(k.batch, v.batch, "the batches of k and v");
    requireEqual(k.rows, v.rows, "the rows of k and v");
    requireEqual(q.width, k.width, "the head widths of q and k");
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
    return [result, { dtype, shape: [q.batch, attributes.q_heads, q.rows, k.rows] }];
  },
  reference({ inputs: [q, k, v, mask, counts, sinks], outputs: [out, scores], attributes, env }) {
    const qLayout = heads(q!.shape, attributes.q_heads) as Layout<number>;
    const kLayout = heads(k!.shape, attributes.kv_heads) as Layout<number>;
    const vLayout = heads(v!.shape, attributes.kv_heads) as Layout<number>;
    const y = new Float64Array(out!.data.length);
    const seen = new Float64Array(scores?.data.length ?? 0);
    attendRows({
      ...attributes,
      offset: evaluate(attributes.offset, env),
      q: { values: numbersOf(q!), layout: qLayout },
      k: { values: numbersOf(k!), layout: kLayout },
      v: { values: numbersOf(v!), layout: vLayout },
      out: { values: y, layout: heads(out!.shape, attributes.q_heads) as Layout<number> },
      mask,
      counts: counts && numbersOf(counts),
      sinks: sinks && numbersOf(sinks),
      seen,
    });
    storeNumbers(out!, y);
    if (scores) storeNumbers(scores, seen);
  },
  cases: attentionCases,
  tolerance: { ofLargest: 1e-4, reason: "float32 exponentials of long rows" },
  kernels: { wasm: [scaledAttentionKernel], gpu: [] },
});

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

function attentionCases(random: CaseRandom): OpCase[] {
  const base = { q_heads: 4, kv_heads: 4, scale: 0.3 };
  const sizes = [
    { name: "rows of heads", q: [2, 5, 32], kv: [2, 7, 32], attributes: base },
    { name: "planes of heads", q: [2, 4, 5, 8], kv: [2, 4, 7, 8], attributes: base },
    {
      name: "grouped, causal, planes of keys",
      q: [1, 3, 64],
      kv: [1, 2, 9, 16],
      attributes: { q_heads: 4, kv_heads: 2, scale: 0.25, causal: true, offset: 6 },
    },
    {
      name: "one row, cap, window",
      q: [1, 8, 1, 64],
      kv: [1, 2, 33, 64],
      attributes: {
        ...{ q_heads: 8, kv_heads: 2, scale: 0.125, softcap: 5 },
        ...{ causal: true, offset: 32, window: 16 },
      },
    },
  ];
  const grouped = { q_heads: 4, kv_heads: 2, scale: 0.25, causal: true, from_end: true };
  const valid: OpCase[] = [1, 5, 40].map((rows) => ({
    name: `${rows} rows behind the valid keys, sinks`,
    inputs: [
      random.input([2, rows, 64]),
      random.input([2, 2, 150, 16]),
      random.input([2, 2, 150, 16]),
      undefined,
      random.indices([rows === 1 ? 1 : rows - 2, 140]),
      random.input([4]),
    ],
    attributes: rows === 5 ? { ...grouped, window: 3 } : grouped,
  }));
  const plain = sizes.flatMap(({ name, q, kv, attributes }) =>
    [false, true].map((masked) => ({
      name: masked ? `${name}, mask` : name,
      inputs: [
        random.input(q),
        random.input(kv),
        random.input(kv),
        masked ? random.input([q.length === 4 ? q[2]! : q[1]!, kv.at(-2)!]) : undefined,
      ],
      attributes,
    }))
  );
  return [...plain, ...valid];
}
