// The loops of scaled_attention in doubles, and how heads lie in tensors of three and four dims.

import { type Dim, exactDiv } from "../graph/dim/mod.ts";
import type { Numbers } from "./host_numbers.ts";
import { getElement, type HostTensor } from "./host_tensor.ts";
import { stridesOf } from "./host_numbers.ts";

/** Rows of heads. */
export interface Layout<T extends Dim> {
  readonly batch: T;
  readonly heads: number;
  readonly rows: T;
  readonly width: T;
  /** True for [batch, rows, heads · width]. */
  readonly joined: boolean;
}

/** How heads lie in [batch, heads, rows, width] or [batch, rows, heads · width]. */
export function heads<T extends Dim>(shape: readonly T[], count: number): Layout<Dim> {
  if (shape.length === 4) {
    const [batch, , rows, width] = shape as readonly [T, T, T, T];
    return { batch, heads: count, rows, width, joined: false };
  }
  const [batch, rows, columns] = shape as readonly [T, T, T];
  return { batch, heads: count, rows, width: exactDiv(columns, count)!, joined: true };
}

/** Flat index of a row of a head. */
function rowAt(layout: Layout<number>, batch: number, head: number, row: number): number {
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
export function appended(before: Operand, fresh: Operand, counts: Numbers | undefined): Operand {
  const { batch, heads: count, rows: held, width } = before.layout, { rows } = fresh.layout;
  const layout = { batch, heads: count, rows: held + rows, width, joined: false };
  const values = new Float64Array(batch * count * layout.rows * width);
  for (let b = 0; b < batch; b++) {
    const start = counts ? Math.max(0, counts[b]! - rows) : held;
    if (start > held) throw new RangeError(`Cannot append at row ${start}: there are ${held}`);
    for (let h = 0; h < count; h++) {
      for (let row = 0; row < start + rows; row++) {
        const source = row < start ? before : fresh;
        const from = rowAt(source.layout, b, h, row < start ? row : row - start);
        const to = rowAt(layout, b, h, row);
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

/** One call, complete. */
export interface AttendRows {
  readonly q: Operand;
  readonly k: Operand;
  readonly v: Operand;
  readonly out: { readonly values: Float64Array; readonly layout: Layout<number> };
  readonly mask: HostTensor | undefined;
  /** Valid keys of each item. */
  readonly counts: Numbers | undefined;
  /** A score of each head that takes part in the softmax and has no value. */
  readonly sinks: Numbers | undefined;
  readonly scale: number;
  readonly softcap: number;
  readonly causal: boolean;
  readonly offset: number;
  readonly from_end: boolean;
  readonly window: number;
  readonly unseen: "zeros" | "nan";
  readonly scores: "none" | "products" | "capped" | "masked" | "weights";
  /** What is asked of the scores, [batch, heads, rows, keys]. */
  readonly seen: Float64Array;
}

/** Attends with every row of every head. */
export function attendRows(call: AttendRows): void {
  const { batch, heads: count, rows } = call.q.layout;
  const keys = call.k.layout.rows;
  const maskOf = maskReader(call.mask, [batch, count, rows, keys]);
  for (let b = 0; b < batch; b++) {
    const valid = call.counts?.[b] ?? keys;
    for (let h = 0; h < count; h++) {
      for (let row = 0; row < rows; row++) {
        // Rows beyond the valid keys of a padded prompt count from the front.
        const own = row + (call.from_end ? Math.max(0, valid - rows) : call.offset);
        const last = Math.min(valid - 1, call.causal ? own : keys - 1);
        const first = call.window > 0 ? own - call.window + 1 : 0;
        const bias = (key: number) =>
          key < first || key > last ? -Infinity : maskOf(b, h, row, key);
        attendRow(call, b, h, row, bias);
      }
    }
  }
}

function attendRow(
  call: AttendRows,
  b: number,
  h: number,
  row: number,
  bias: (key: number) => number,
): void {
  const { q, k, v, out, scale, softcap, scores: kind, seen } = call;
  const keys = k.layout.rows, width = q.layout.width;
  const kvHead = Math.floor(h / (q.layout.heads / k.layout.heads));
  const query = rowAt(q.layout, b, h, row);
  const record = ((b * q.layout.heads + h) * q.layout.rows + row) * keys;
  const weights = new Float64Array(keys);
  let largest = call.sinks?.[h] ?? -Infinity;
  for (let j = 0; j < keys; j++) {
    const key = rowAt(k.layout, b, kvHead, j);
    let dot = 0;
    for (let i = 0; i < width; i++) dot += q.values[query + i]! * k.values[key + i]!;
    const product = dot * scale;
    const capped = softcap > 0 ? softcap * Math.tanh(product / softcap) : product;
    // A key that is not seen does not count, whatever its product is, even NaN.
    const added = bias(j), masked = added === -Infinity ? -Infinity : capped + added;
    if (kind === "products") seen[record + j] = product;
    else if (kind === "capped") seen[record + j] = capped;
    else if (kind === "masked") seen[record + j] = masked;
    weights[j] = masked;
    if (!(masked <= largest)) largest = masked;
  }
  // A row that sees nothing gives zeros, or NaN.
  if (largest === -Infinity) largest = 0;
  let total = call.sinks ? Math.exp(call.sinks[h]! - largest) : 0;
  for (let j = 0; j < keys; j++) total += weights[j] = Math.exp(weights[j]! - largest);
  const target = rowAt(out.layout, b, h, row), nothing = call.unseen === "nan" ? NaN : 0;
  for (let j = 0; j < keys; j++) {
    const weight = total === 0 ? nothing : weights[j]! / total;
    if (kind === "weights") seen[record + j] = weight;
    if (weight === 0) continue;
    const value = rowAt(v.layout, b, kvHead, j);
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
