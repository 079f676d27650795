// The loops of attention in doubles, and how heads lie in tensors.

import { type Dim, exactDiv } from "../graph/dim/mod.ts";
import type { Attributes } from "../graph/graph.ts";
import { type Numbers, stridesOf } from "./host_numbers.ts";
import { getElement, type HostTensor } from "./host_tensor.ts";

/** Rows of heads. */
export interface Layout<T extends Dim> {
  readonly batch: T;
  readonly heads: number;
  readonly rows: T;
  readonly width: T;
  /** True for [batch, rows, heads · width]. */
  readonly joined: boolean;
}

/**
 * How heads lie in [batch, heads, rows, width] or [batch, rows, heads · width], or, where they are counted by their shape
 * (0), in [rows, heads, width].
 */
export function heads<T extends Dim>(shape: readonly T[], count: number): Layout<Dim> {
  if (count === 0) {
    const [rows, own, width] = shape as readonly [T, number, T];
    return { batch: 1, heads: own, rows, width, joined: true };
  }
  if (shape.length === 4) {
    const [batch, , rows, width] = shape as readonly [T, T, T, T];
    return { batch, heads: count, rows, width, joined: false };
  }
  const [batch, rows, columns] = shape as readonly [T, T, T];
  return { batch, heads: count, rows, width: exactDiv(columns, count)!, joined: true };
}

/** How queries, keys and values of an attention over tensors lie, which may be one. */
export function layoutsOf(
  [q, k, v]: readonly ({ readonly shape: readonly Dim[] } | undefined)[],
  attributes: Attributes,
): Record<"q" | "k" | "v", Layout<Dim>> {
  const { q_heads, kv_heads } = attributes as Record<"q_heads" | "kv_heads", number>;
  if (!k || !v) {
    const all = heads(q!.shape, q_heads + 2 * kv_heads);
    return { q: all, k: all, v: all };
  }
  return { q: heads(q!.shape, q_heads), k: heads(k.shape, kv_heads), v: heads(v.shape, kv_heads) };
}

/** Flat index of a row of a head. */
export function rowAt(
  layout: Layout<number>,
  { batch, head, row }: { readonly batch: number; readonly head: number; readonly row: number },
): number {
  const { heads: count, rows, width, joined } = layout;
  const at = joined ? (batch * rows + row) * count + head : (batch * count + head) * rows + row;
  return at * width;
}

/** Heads and how they lie. */
export interface Operand {
  readonly values: Numbers;
  readonly layout: Layout<number>;
}

/**
 * Heads with others behind them: behind all rows, or where `counts` says how many are valid in the end.
 *
 * @throws {RangeError} If there would be a gap between them.
 */
export function appended(
  before: Operand,
  { fresh, counts }: { readonly fresh: Operand; readonly counts: Numbers | undefined },
): Operand {
  const { batch, heads: count, rows: held, width } = before.layout, { rows } = fresh.layout;
  const layout = { batch, heads: count, rows: held + rows, width, joined: false };
  const values = new Float64Array(batch * count * layout.rows * width);
  for (let b = 0; b < batch; b++) {
    const start = counts ? Math.max(0, counts[b]! - rows) : held;
    if (start > held) throw new RangeError(`Cannot append at row ${start}: there are ${held}`);
    for (let h = 0; h < count; h++) {
      for (let row = 0; row < start + rows; row++) {
        const source = row < start ? before : fresh;
        const from = rowAt(source.layout, {
          batch: b,
          head: h,
          row: row < start ? row : row - start,
        });
        const to = rowAt(layout, { batch: b, head: h, row });
        for (let i = 0; i < width; i++) values[to + i] = source.values[from + i]!;
      }
    }
  }
  return { values, layout };
}

/** Heads side by side in rows, taken apart. */
export function unpacked({ values, layout }: Operand, counts: readonly number[]): Operand[] {
  const { batch, rows, width, heads: all } = layout;
  let from = 0;
  return counts.map((count) => {
    const own = new Float64Array(batch * rows * count * width);
    for (let row = 0; row < batch * rows; row++) {
      for (let i = 0; i < count * width; i++) {
        own[row * count * width + i] = values[(row * all + from) * width + i]!;
      }
    }
    from += count;
    return { values: own, layout: { ...layout, heads: count } };
  });
}

/** The keys that a row may see: `first` … `end` - 1 of those of its item. */
export interface Seen {
  readonly first: number;
  readonly end: number;
  /** Where the row itself stands among them, for what depends on distance. */
  readonly own: number;
  /** Where its sequence begins. */
  readonly start: number;
  readonly k: Operand;
  readonly v: Operand;
}

/** One call, complete. */
export interface AttendRows {
  readonly q: Operand;
  readonly out: { readonly values: Float64Array; readonly layout: Layout<number> };
  /** Keys of an item. */
  readonly keys: number;
  seenBy(item: number, row: number): Seen;
  readonly mask: HostTensor | undefined;
  /** A score of each head that takes part in the softmax and has no value. */
  readonly sinks: Numbers | undefined;
  /** What a head's scores lose with each step of distance. */
  readonly slopes: Numbers | undefined;
  /** Summands by head and distance, of an odd number of distances. */
  readonly bias: HostTensor | undefined;
  readonly scale: number;
  readonly softcap: number;
  readonly unseen: "zeros" | "nan";
  readonly scores: "none" | "products" | "capped" | "masked" | "weights";
  /** What is asked of the scores, [batch, heads, rows, keys]. */
  readonly record: Float64Array;
}

/** Attends with every row of every head. */
export function attendRows(call: AttendRows): void {
  const { batch, heads: count, rows } = call.q.layout;
  const maskOf = maskReader(call.mask, [batch, count, rows, call.keys]);
  for (let b = 0; b < batch; b++) {
    for (let row = 0; row < rows; row++) {
      const seen = call.seenBy(b, row);
      for (let h = 0; h < count; h++) {
        const added = (key: number) => maskOf(b, h, row, key) + byDistance(call, { h, key, seen });
        attendRow(call, { b, h, row, seen }, added);
      }
    }
  }
}

function byDistance(
  { slopes, bias }: AttendRows,
  { h, key, seen }: { readonly h: number; readonly key: number; readonly seen: Seen },
): number {
  const falling = slopes ? -slopes[h]! * (seen.own - key) : 0;
  if (!bias) return falling;
  const columns = bias.shape[1]!, reach = (columns - 1) / 2;
  const distance = Math.max(-reach, Math.min(reach, key - seen.start - seen.own));
  return falling + getElement(bias, h * columns + reach + distance);
}

function attendRow(
  call: AttendRows,
  { b, h, row, seen: { first, end, k, v } }: {
    readonly b: number;
    readonly h: number;
    readonly row: number;
    readonly seen: Seen;
  },
  addedTo: (key: number) => number,
): void {
  const { q, out, keys, scale, softcap, scores: kind, record } = call;
  const width = q.layout.width;
  const kvHead = Math.floor(h / (q.layout.heads / k.layout.heads));
  const query = rowAt(q.layout, { batch: b, head: h, row });
  const recorded = ((b * q.layout.heads + h) * q.layout.rows + row) * keys;
  // Scores that are asked for are those of all keys.
  const from = kind === "none" ? first : 0, to = kind === "none" ? end : keys;
  const weights = new Float64Array(Math.max(0, to - from));
  let largest = call.sinks?.[h] ?? -Infinity;
  for (let j = from; j < to; j++) {
    const key = rowAt(k.layout, { batch: b, head: kvHead, row: j });
    let dot = 0;
    for (let i = 0; i < width; i++) dot += q.values[query + i]! * k.values[key + i]!;
    const product = dot * scale;
    const capped = softcap > 0 ? softcap * Math.tanh(product / softcap) : product;
    // A key that is not seen does not count, whatever its product is, even NaN.
    const added = j < first || j >= end ? -Infinity : addedTo(j);
    const masked = added === -Infinity ? -Infinity : capped + added;
    if (kind === "products") record[recorded + j] = product;
    else if (kind === "capped") record[recorded + j] = capped;
    else if (kind === "masked") record[recorded + j] = masked;
    weights[j - from] = masked;
    if (!(masked <= largest)) largest = masked;
  }
  if (largest === -Infinity) largest = 0;
  let total = call.sinks ? Math.exp(call.sinks[h]! - largest) : 0;
  weights.forEach((score, j) => total += weights[j] = Math.exp(score - largest));
  const target = rowAt(out.layout, { batch: b, head: h, row });
  // A row that sees nothing gives zeros, or NaN.
  const isSpoilt = total === 0 && call.unseen === "nan" && keys > 0;
  if (isSpoilt) out.values.fill(NaN, target, target + out.layout.width);
  for (let j = from; j < to; j++) {
    const weight = total === 0 ? (isSpoilt ? NaN : 0) : weights[j - from]! / total;
    if (kind === "weights") record[recorded + j] = weight;
    if (weight === 0) continue;
    const value = rowAt(v.layout, { batch: b, head: kvHead, row: j });
    for (let i = 0; i < v.layout.width; i++) {
      out.values[target + i]! += weight * v.values[value + i]!;
    }
  }
}

/** What a mask adds for (batch, head, row, key). */
function maskReader(
  mask: HostTensor | undefined,
  shape: readonly [number, number, number, number],
): (b: number, h: number, row: number, key: number) => number {
  if (!mask) return () => 0;
  const lead = 4 - mask.shape.length;
  const strides = stridesOf(mask.shape);
  const steps = shape.map((_, axis) =>
    axis < lead || mask.shape[axis - lead] === 1 ? 0 : strides[axis - lead]!
  );
  const columns = mask.shape.at(-1)!;
  return (b, h, row, key) => {
    if (columns !== 1 && key >= columns) return -Infinity;
    const at = b * steps[0]! + h * steps[1]! + row * steps[2]! + key * steps[3]!;
    const value = getElement(mask, at);
    return mask.dtype !== "bool" ? value : value !== 0 ? 0 : -Infinity;
  };
}
