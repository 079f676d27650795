// The shape rule of attention (records/attention.ts), one function a form.

import { ATTENTION_INPUTS, type AttentionInput } from "./attention_inputs.ts";
import { heads, type Layout } from "./attention_rows.ts";
import { CACHE_TYPES, checkCache } from "./cache_rows.ts";
import {
  add,
  compare,
  type Dim,
  equal,
  exactDiv,
  formatDim,
  mul,
  product,
  sub,
} from "../graph/dim/mod.ts";
import type { TensorType } from "../graph/graph.ts";
import { FLOATS } from "./host_numbers.ts";
import { inferQ8 } from "./q8_rows.ts";
import {
  checkInputCount,
  type InputRule,
  lastDim,
  optionalInput,
  refuseMisfit,
  requireEqual,
  requireInput,
} from "./shape_rules.ts";

/** Attributes of heads in tensors, with what they are for rows of a step, which may have heads of keys too. */
const OF_TENSORS = {
  ...{ causal: false, offset: 0, from_end: false },
  ...{ scores: "none", new_rows: "behind_all", unseen: "zeros" },
} as const;

/** The attributes that shapes depend on. */
export interface ShapedAttributes extends Readonly<Record<keyof typeof OF_TENSORS, unknown>> {
  readonly q_heads: number;
  readonly kv_heads: number;
  readonly window: number;
  readonly scores: string;
  readonly new_rows: string;
  readonly to: string;
  readonly style: string;
}

/** Inputs by name, checked as they are asked for. */
interface Asked {
  required(name: AttentionInput, rule?: InputRule): TensorType;
  optional(name: AttentionInput, rule?: InputRule): TensorType | undefined;
  has(name: AttentionInput): boolean;
}

/** Types of the results. */
export function inferAttention(
  inputs: readonly (TensorType | undefined)[],
  attributes: ShapedAttributes,
): TensorType[] {
  checkInputCount(inputs, ATTENTION_INPUTS.length);
  const asked = new Set<AttentionInput>();
  const at = (name: AttentionInput) => {
    asked.add(name);
    return ATTENTION_INPUTS.indexOf(name);
  };
  const given: Asked = {
    required: (name, rule) => requireInput(inputs, { index: at(name), name, ...rule }),
    optional: (name, rule) => optionalInput(inputs, { index: at(name), name, ...rule }),
    has: (name) => inputs[ATTENTION_INPUTS.indexOf(name)] !== undefined,
  };
  const isOfTensors = attributes.q_heads > 0;
  const unused = isOfTensors
    ? attributes.style === "none" ? undefined : "style"
    : Object.entries(OF_TENSORS).find(([name, value]) =>
      attributes[name as keyof typeof OF_TENSORS] !== value
    )?.[0];
  if (unused) throw new TypeError(`this form of attention has no ${unused}`);
  const [result, ...others] = isOfTensors
    ? inferTensors(given, attributes)
    : attributes.style === "none"
    ? [inferOwnRows(given, attributes)]
    : inferRotated(given, attributes);
  const other = ATTENTION_INPUTS.find((name, i) => inputs[i] && !asked.has(name));
  if (other) throw new TypeError(`this form of attention takes no ${other}`);
  return [attributes.to === "q8" ? inferQ8(result!) : result!, ...others];
}

const INDICES: InputRule = { dtype: "i32", rank: 1 };

function inferOwnRows(given: Asked, attributes: ShapedAttributes): TensorType {
  const { kv_heads } = attributes, q = given.required("q", { rank: 3 });
  if (kv_heads === 0) return inferRows(given, q, attributes);
  const { dtype, shape: [rows, all, width] } = q;
  const heads = (all as number) - 2 * kv_heads;
  if (given.has("k") || given.has("v") || given.has("slots")) {
    throw new TypeError("queries, keys and values in one tensor have none beside, and no cache");
  }
  if (!(heads > 0)) throw new RangeError(`q has no queries beside 2 · ${kv_heads} heads`);
  const [queries, keys] = [heads, kv_heads].map((count): TensorType => ({
    dtype,
    shape: [rows!, count, width!],
  }));
  return inferRows(given, queries!, { ...attributes, own: keys });
}

/** @param attributes With keys and values, where they are no inputs. */
function inferRows(
  { required, optional }: Asked,
  q: TensorType,
  { window, own }: ShapedAttributes & { readonly own?: TensorType | undefined },
): TensorType {
  const slots = optional("slots", INDICES);
  const cached: InputRule = { dtype: slots ? CACHE_TYPES : "f32", rank: 3 };
  const k = own ?? required("k", cached), v = own ?? required("v", cached);
  checkCache(k);
  checkCache(v);
  const positions = optional("positions", INDICES);
  const starts = optional("starts", INDICES), ends = optional("ends", INDICES);
  const bias = optional("bias", { rank: 2 });
  const rows = slots && !ends ? optional("rows", INDICES) : undefined;
  const sinks = optional("sinks", { rank: 1 }), slopes = optional("slopes", { rank: 1 });
  requireEqual(q.shape[2]!, { b: k.shape[2]!, what: "the head widths of q and k" });
  requireEqual(k.shape[0]!, { b: v.shape[0]!, what: "the rows of k and v" });
  requireEqual(k.shape[1]!, { b: v.shape[1]!, what: "the heads of k and v" });
  for (const [name, list] of Object.entries({ positions, slots, starts, ends })) {
    if (list) {
      requireEqual(q.shape[0]!, { b: list.shape[0]!, what: `the rows of q and the ${name}` });
    }
  }
  if (!positions && (bias || slopes || window > 0 || !ends)) required("positions");
  for (const [name, perHead] of Object.entries({ sinks, slopes, bias })) {
    if (perHead) {
      requireEqual(q.shape[1]!, { b: perHead.shape[0]!, what: `the heads of q and the ${name}` });
    }
  }
  if (bias && (bias.shape[1] as number) % 2 !== 1) {
    throw new RangeError("bias must have an odd number of columns: distances -R to R");
  }
  if (exactDiv(q.shape[1]!, k.shape[1]!) === undefined) {
    throw new RangeError("the heads of q must be a multiple of the heads of k");
  }
  return { dtype: "f32", shape: [(rows ?? q).shape[0]!, mul(q.shape[1]!, v.shape[2]!)] };
}

function inferRotated(given: Asked, attributes: ShapedAttributes): TensorType[] {
  const { required, optional } = given;
  if (attributes.kv_heads !== 0) throw new TypeError("this form of attention has no kv_heads");
  const qkv = required("q", { rank: 2 }), table = required("table", { rank: 2 });
  const keys = required("k", { dtype: CACHE_TYPES, rank: 3 });
  const values = required("v", { dtype: [keys.dtype as "f32"], rank: 3 });
  required("slots", INDICES);
  const [, groups, width] = keys.shape as [Dim, number, number];
  keys.shape.forEach((dim, i) =>
    requireEqual(dim, { b: values.shape[i]!, what: "the dims of both caches" })
  );
  requireEqual(qkv.shape[0]!, { b: table.shape[0]!, what: "the rows of q and the table" });
  for (const name of ["query_norm", "key_norm"] as const) {
    const norm = optional(name, { rank: 1 });
    if (norm) {
      requireEqual(width, { b: norm.shape[0]!, what: `the width of a head and the ${name}` });
    }
  }
  const fresh = ["new_k", "new_v"] as const;
  const apart = fresh.flatMap((name) => optional(name, { rank: 2 }) ?? []);
  apart.forEach((rows, i) => {
    requireEqual(qkv.shape[0]!, { b: rows.shape[0]!, what: `the rows of q and ${fresh[i]}` });
    requireEqual(groups * width, {
      b: lastDim(rows),
      what: `the width of the cache and ${fresh[i]}`,
    });
  });
  if (apart.length === 1) throw new TypeError("new_k and new_v must be given together");
  const count = exactDiv(sub(lastDim(qkv), apart.length ? 0 : 2 * groups * width), width);
  if (count === undefined || compare(count, 0) !== ">") {
    throw new RangeError("q must have queries, keys and values of whole heads");
  }
  if (![">", ">=", "=="].includes(compare(width, lastDim(table)))) {
    throw new RangeError("the table must not be wider than a head");
  }
  const queries: TensorType = { dtype: "f32", shape: [qkv.shape[0]!, count, width] };
  const result = inferRows(given, queries, attributes);
  return [result, ...[keys, values].map(({ dtype, shape }) => ({ dtype, shape }))];
}

function inferTensors(given: Asked, attributes: ShapedAttributes): TensorType[] {
  const { q_heads, kv_heads, scores } = attributes;
  const { required, optional, has } = given;
  if (kv_heads === 0) throw new TypeError('attribute "kv_heads" is missing');
  const isPacked = !has("k") && !has("v");
  const q = headsOf(required("q", HEADS), isPacked ? q_heads + 2 * kv_heads : q_heads, "q");
  const k = isPacked ? q : headsOf(required("k", HEADS), kv_heads, "k");
  const v = isPacked ? q : headsOf(required("v", HEADS), kv_heads, "v");
  const fresh = newHeads(given, attributes, { k, v });
  if (isPacked && (!q.joined || fresh)) {
    throw new TypeError("queries, keys and values in one tensor are rows, without new ones beside");
  }
  const mask = optional("mask", { dtype: ["bool", ...FLOATS] });
  const counts = optional("key_counts", { dtype: ["i32", "i64"], rank: 1 });
  const sinks = optional("sinks", { dtype: FLOATS, rank: 1 });
  const all = [q.batch, q_heads, q.rows];
  mask?.shape.slice(-4, -1).forEach((size, i, { length }) =>
    refuseMisfit(size, { sizes: [1, all[3 - length + i]!], what: `dim ${i} of the mask` })
  );
  if (counts) {
    refuseMisfit(counts.shape[0]!, { sizes: [q.batch], what: "the number of key_counts" });
  }
  if (sinks) refuseMisfit(sinks.shape[0]!, { sizes: [q_heads], what: "the number of sinks" });
  requireEqual(q.batch, { b: k.batch, what: "the batches of q and k" });
  requireEqual(k.batch, { b: v.batch, what: "the batches of k and v" });
  requireEqual(k.rows, { b: v.rows, what: "the rows of k and v" });
  requireEqual(q.width, { b: k.width, what: "the head widths of q and k" });
  if (attributes.new_rows === "behind_valid" && (!fresh || !counts)) {
    throw new TypeError("new rows behind the valid keys need new_k, new_v and key_counts");
  }
  if (q_heads % kv_heads !== 0) {
    throw new RangeError(`${q_heads} heads of q: must be a multiple of the ${kv_heads} of k`);
  }
  const { dtype, shape } = required("q", HEADS);
  const out = shape.length === 4
    ? [q.batch, q_heads, q.rows, v.width]
    : [q.batch, q.rows, mul(v.width, q_heads)];
  const keys = add(k.rows, fresh?.rows ?? 0);
  const results = [{ dtype, shape: out }, { dtype, shape: [q.batch, q_heads, q.rows, keys] }];
  return scores === "none" ? results.slice(0, 1) : results;
}

const HEADS: InputRule = { dtype: FLOATS, minRank: 3 };

function headsOf({ shape }: TensorType, count: number, name: string): Layout<Dim> {
  if (shape.length > 4) throw new RangeError(`${name} must have 3 or 4 dims`);
  if (shape.length === 4) requireEqual(shape[1]!, { b: count, what: `the heads of ${name}` });
  else if (exactDiv(shape[2]!, count) === undefined) {
    throw new RangeError(
      `${name} has rows of ${formatDim(shape[2]!)}: must be a multiple of ${count} heads`,
    );
  }
  return heads(shape, count);
}

/** The rows of new keys and values, which fit those before them. */
function newHeads(
  { required, has }: Asked,
  { kv_heads }: ShapedAttributes,
  { k, v }: { readonly k: Layout<Dim>; readonly v: Layout<Dim> },
): Layout<Dim> | undefined {
  if (!has("new_k") && !has("new_v")) return undefined;
  const newK = headsOf(required("new_k", HEADS), kv_heads, "new_k");
  const newV = headsOf(required("new_v", HEADS), kv_heads, "new_v");
  requireEqual(newK.rows, { b: newV.rows, what: "the rows of new_k and new_v" });
  for (const [fresh, before, name] of [[newK, k, "k"], [newV, v, "v"]] as const) {
    requireEqual(fresh.batch, { b: before.batch, what: `the batches of new_${name} and ${name}` });
    requireEqual(fresh.width, {
      b: before.width,
      what: `the head widths of new_${name} and ${name}`,
    });
  }
  return newK;
}

/** Strides of a mask under [B, H, S, T], in elements, 0 where it repeats; and its columns. */
export function maskStrides(
  mask: readonly Dim[] = [],
): Readonly<Record<"mask_batch" | "mask_head" | "mask_row" | "mask_columns", Dim>> {
  const shape: Dim[] = [...new Array<Dim>(4).fill(1), ...mask].slice(-4);
  const step = (axis: number) => equal(shape[axis]!, 1) ? 0 : product(shape.slice(axis + 1));
  return { mask_batch: step(0), mask_head: step(1), mask_row: step(2), mask_columns: shape[3]! };
}
