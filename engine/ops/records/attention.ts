// attention: softmax(cap(q·kᵀ·scale) + …)·v. Query head h reads key-value head ⌊h / (H / Hkv)⌋ (grouped queries). Heads
// come in two ways. As rows of a step [M, H, D], each of which sees a span of keys: those of its own slot's cache, which
// is what sessions of a Model are made of, or rows of the same step, as in encoders. Or as tensors of items, as ONNX
// graphs have them, with masks and counts of valid keys. What a row may not see is decided by all that is given
// together: its span, the mask, the valid keys of its item, causality and a window.
//
// With `style` the rows of a step come as the product of queries, keys and values that they are made by: heads are
// normalised if the model does that, queries and keys rotated, keys and values written to the caches (spec MD-10, TL-12,
// TL-13), so that a row which is alone in its step needs no pass over its heads in between. A pass makes that
// (engine/plan/passes/fuse_attention_input.ts) where the device has a kernel for it, as one makes `to` q8.

import { choice, dim, flag, integer, number } from "../attributes.ts";
import { attentionCases } from "../attention_cases.ts";
import { type AttentionInputs, attentionInputs } from "../attention_inputs.ts";
import {
  appended,
  attendRows,
  heads,
  type Layout,
  type Operand,
  type Seen,
  unpacked,
} from "../attention_rows.ts";
import { inferAttention } from "../attention_shapes.ts";
import { readableCache, writeCacheRow } from "../cache_rows.ts";
import { defineOp, type TypedCall } from "../define_op.ts";
import { evaluate } from "../../graph/dim/mod.ts";
import { numbersOf, storeNumbers } from "../host_numbers.ts";
import { getElement, type HostTensor } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { quantizeGroups } from "../q8_rows.ts";
import { normRows } from "./norm.ts";
import { rotateHeads } from "./rope.ts";

const ATTRIBUTES = {
  /** Factor of products. */
  scale: number(),
  /** Heads in tensors; 0: rows of a step, whose heads are a dim. */
  q_heads: integer(0, 0),
  /** Of rows of a step: those of keys, and of values, that lie behind the queries in q; 0: they are inputs. */
  kv_heads: integer(0, 0),
  /** Bound of scores; 0: none. */
  softcap: number(0),
  /** Of tensors: row s sees keys up to s + `offset`, or up to s + (key_counts - S) with `from_end`. */
  causal: flag(false),
  offset: dim(0),
  from_end: flag(false),
  /** Keys that a row sees at most, its own included; 0: all. */
  window: integer(0, 0),
  /** What the second output holds: products, products after the cap, with the mask added, or weights. */
  scores: choice(["none", "products", "capped", "masked", "weights"], "none"),
  /** Where new keys stand: behind all others, or behind those of them that `key_counts` leaves valid. */
  new_rows: choice(["behind_all", "behind_valid"], "behind_all"),
  /** What a row is whose keys are all masked; a softmax by itself gives NaN. */
  unseen: choice(["zeros", "nan"], "zeros"),
  /** `q8`: the result is what quantize makes of it. */
  to: choice(["f32", "q8"], "f32"),
  /** How queries and keys are rotated on their way from q (see rope). */
  style: choice(["none", "half", "interleaved"], "none"),
  /** Of query_norm and key_norm, as those of norm. */
  epsilon: number(1e-6),
  base: number(0),
} as const;

type Call = TypedCall<typeof ATTRIBUTES>;
type Given = AttentionInputs<HostTensor>;

/**
 * Rows of a step: (q f32[M, H, D], k [C, Hkv, D], v [C, Hkv, Dv], sinks f32[H]?, positions i32[M]?, slots i32[M]?,
 * slopes f32[H]?, starts i32[M]?, ends i32[M]?, bias f32[H, 2R+1]?, rows i32[L]?) → f32[M, H·Dv]. With `slots` k and v are
 * states, else rows of the step. With `rows`, which `ends` rules out, those of them alone attend, L ≤ M: → f32[L, H·Dv].
 * Without `starts` spans begin at 0; without `ends` they end behind the row's position. A sink is a score that takes part in
 * the softmax and has no value. Scores fall with a key's distance times the head's slope (ALiBi); `bias[h, R + d]` is added to
 * the score of a key whose distance from the row, (key - start) - position, is d; d beyond ±R counts as ±R (T5). An empty
 * span gives zeros.
 *
 * The same with `kv_heads`: q is f32[M, H + 2Hkv, D], a row having its queries, keys and values; no k and v.
 *
 * The same with `style`: q is f32[M, (H + 2Hkv)·D], a row having the queries of all heads, then the keys, then the values;
 * or the queries alone, where weights of different formats could not be joined, and new_k and new_v f32[M, Hkv·D] are
 * given. Further table f32[M, d], query_norm f32[D]?, key_norm f32[D]?. → (f32[M, H·D], keys, values); with `rows` f32[L, H·D],
 * and the keys and values of all rows are stored.
 *
 * Tensors: (q, k?, v?, mask [… of B, H, S, T]?, key_counts i32|i64[B]?, sinks [H]?, new_k?, new_v?) →
 * (like q, [B, H, S, T]?). New keys and values may come in tensors of their own, so that a cache need not be copied to be
 * appended to; T counts them, and so do `key_counts`. q, k and v are [B, heads, rows, width] or
 * [B, rows, heads · width] each. Without k and v, q holds all three, [B, rows, (q_heads + 2 · kv_heads) · width]: queries,
 * keys, values, as one product makes them. A mask is boolean (true: seen) or added; where it has fewer columns than
 * there are keys, the rest is not seen.
 */
export const attention: OpRecord = defineOp({
  name: "attention",
  summary: "softmax(q·kᵀ·scale + mask)·v",
  attributes: ATTRIBUTES,
  infer: inferAttention,
  inPlace: ({ style }): Record<number, number> => style === "none" ? {} : { 1: 1, 2: 2 },
  reference(call) {
    const { inputs, outputs: [out, second], attributes, env } = call;
    const given = attentionInputs(inputs);
    const { q, v, seenBy, keys } = attributes.q_heads > 0
      ? tensors(given, attributes, evaluate(attributes.offset, env))
      : rowsOfStep(given, call);
    const width = v.layout.width;
    const values = new Float64Array(q.layout.batch * q.layout.rows * q.layout.heads * width);
    const scores = attributes.scores === "none" ? undefined : second;
    const record = new Float64Array(scores?.data.length ?? 0);
    attendRows({
      ...attributes,
      ...{ q, keys, seenBy, record, mask: given.mask, bias: given.bias },
      out: { values, layout: { ...q.layout, width } },
      sinks: given.sinks && numbersOf(given.sinks),
      slopes: given.slopes && numbersOf(given.slopes),
    });
    storeNumbers(out!, values);
    if (attributes.to === "q8") quantizeGroups(out!, out!);
    if (scores) storeNumbers(scores, record);
  },
  cases: attentionCases,
  tolerance: { ofLargest: 1e-4, reason: "float32 exponentials of long rows" },
});

/** What the loops ask of either form. */
interface Source {
  readonly q: Operand;
  readonly v: Pick<Operand, "layout">;
  readonly keys: number;
  seenBy(item: number, row: number): Seen;
}

function operand(tensor: HostTensor, count: number): Operand {
  return { values: numbersOf(tensor), layout: heads(tensor.shape, count) as Layout<number> };
}

function tensors(given: Given, attributes: Call["attributes"], offset: number): Source {
  const { q_heads, kv_heads, causal, from_end, window, new_rows } = attributes;
  const { q, k: before, v, key_counts, new_k, new_v } = given;
  const valid = key_counts && numbersOf(key_counts);
  const starts = new_rows === "behind_valid" ? valid : undefined;
  const whole = (tensor: HostTensor, fresh: HostTensor | undefined) => {
    const held = operand(tensor, kv_heads);
    return fresh ? appended(held, { fresh: operand(fresh, kv_heads), counts: starts }) : held;
  };
  const parts = before && v
    ? [operand(q!, q_heads), whole(before, new_k), whole(v, new_v)]
    : unpacked(operand(q!, q_heads + 2 * kv_heads), [q_heads, kv_heads, kv_heads]);
  const [queries, k, values] = parts as [Operand, Operand, Operand];
  const { rows } = queries.layout, keys = k.layout.rows;
  const seenBy = (item: number, row: number): Seen => {
    const count = valid?.[item] ?? keys;
    // Rows beyond the valid keys of a padded prompt count from the front.
    const own = row + (from_end ? Math.max(0, count - rows) : offset);
    const end = Math.min(count, keys, causal ? own + 1 : keys);
    const first = window > 0 ? Math.max(0, own - window + 1) : 0;
    return { first, end, own, start: 0, k, v: values };
  };
  return { q: queries, v: values, keys, seenBy };
}

function rowsOfStep(given: Given, call: Call): Source {
  const { attributes: { window, style, kv_heads }, stateOf } = call;
  const { positions, slots, starts, ends, rows } = given;
  const stepRow = (row: number) => rows ? getElement(rows, row) : row;
  const { q, k, v } = style !== "none"
    ? { ...given, q: rotateAndStore(given, call) }
    : kv_heads > 0
    ? takenApart(given.q!, kv_heads)
    : given;
  const capacity = k!.shape[0]!;
  const layout = heads(v!.shape, 0) as Layout<number>;
  const step = slots ? undefined : { k: operand(k!, 0), v: operand(v!, 0) };
  const cached = (input: number, row: number, end: number): Operand =>
    operand(headOf(readableCache(stateOf(input, getElement(slots!, row)), end), end), 0);
  const seenBy = (_: number, place: number): Seen => {
    const row = stepRow(place);
    const own = positions ? getElement(positions, row) : 0;
    if (!ends && (own < 0 || own >= capacity)) {
      throw new RangeError(`Cannot attend at position ${own}: the cache holds ${capacity}`);
    }
    const start = starts ? getElement(starts, row) : 0;
    const end = ends ? getElement(ends, row) : own + 1;
    if (start < 0 || end > capacity) {
      throw new RangeError(`Cannot attend to rows ${start} to ${end}: there are ${capacity}`);
    }
    const first = window > 0 ? Math.max(start, own - window + 1) : start;
    const source = step ?? { k: cached(1, row, end), v: cached(2, row, end) };
    return { first, end, own, start, ...source };
  };
  return { q: operand(rows ? chosen(q!, rows) : q!, 0), v: { layout }, keys: capacity, seenBy };
}

/** Queries, keys and values of rows that have all of them. */
function takenApart(qkv: HostTensor, count: number): Record<"q" | "k" | "v", HostTensor> {
  const [rows, all, width] = qkv.shape as [number, number, number], queries = all - 2 * count;
  const flat = { ...qkv, shape: [rows, all * width] };
  const [q, k, v] = [[0, queries], [queries, count], [queries + count, count]].map((
    [first, count],
  ) => headsOf(flat, { first: first!, count: count!, width }));
  return { q: q!, k: k!, v: v! };
}

/** Some of the rows, by index. */
function chosen(x: HostTensor, indices: HostTensor): HostTensor {
  const all = numbersOf(x), { length } = indices.data, width = all.length / x.shape[0]!;
  const data = new Float32Array(length * width);
  for (let row = 0; row < length; row++) {
    const from = getElement(indices, row) * width;
    for (let i = 0; i < width; i++) data[row * width + i] = all[from + i]!;
  }
  return { dtype: "f32", shape: [length, ...x.shape.slice(1)], data };
}

/** The first rows of a cache. */
function headOf({ dtype, shape, data }: HostTensor, rows: number): HostTensor {
  const [, count, width] = shape as [number, number, number];
  const part = (data as Float32Array).subarray(0, Math.max(0, rows) * count * width);
  return { dtype, shape: [rows, count, width], data: part };
}

/** Queries ready to be attended with; keys and values go to the caches. */
function rotateAndStore(given: Given, { outputs: [out], attributes, stateOf }: Call): HostTensor {
  const { q: qkv, k: keys, table, query_norm, key_norm, new_k, new_v, positions, slots } = given;
  const [capacity, groups, width] = keys!.shape as [number, number, number];
  const count = out!.shape[1]! / width, style = attributes.style as "half" | "interleaved";
  const queries = headsOf(qkv!, { first: 0, count, width });
  const fresh = new_k
    ? headsOf(new_k, { first: 0, count: groups, width })
    : headsOf(qkv!, { first: count, count: groups, width });
  const read = new_v
    ? headsOf(new_v, { first: 0, count: groups, width })
    : headsOf(qkv!, { first: count + groups, count: groups, width });
  if (query_norm) normRows(queries, queries, { ...attributes, weight: query_norm });
  if (key_norm) normRows(fresh, fresh, { ...attributes, weight: key_norm });
  for (const rows of [queries, fresh]) rotateHeads(rows, { table: table!, out: rows, style });
  for (let row = 0; row < qkv!.shape[0]!; row++) {
    const position = getElement(positions!, row), slot = getElement(slots!, row);
    [fresh, read].forEach((rows, i) =>
      writeCacheRow(stateOf(1 + i, slot), { position, capacity, rows, row })
    );
  }
  return queries;
}

/** A copy of `count` heads of every row. */
function headsOf(
  qkv: HostTensor,
  { first, count, width }: {
    readonly first: number;
    readonly count: number;
    readonly width: number;
  },
): HostTensor {
  const [rows, columns] = qkv.shape as [number, number];
  const data = new Float32Array(rows * count * width);
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < count * width; i++) {
      data[row * count * width + i] = getElement(qkv, row * columns + first * width + i);
    }
  }
  return { dtype: "f32", shape: [rows, count, width], data };
}
