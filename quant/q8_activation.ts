// Rows of activations in signed 8 bit, as they lie in memory between quantize and matmul
// (spec LF-3, MD-11). A row of K values, K a multiple of 32, is
//   K int8 codes · K/32 float32 scales · K/32 float32 sums · K/32 pairs of int16 half sums · padding to 16 bytes
// where a group of 32 has scale = max|x| / 127 (NaN if a value is not finite), code = x / scale to nearest, ties to even,
// sum = scale · Σ codes (weights with minima are multiplied by it: y = s(d Σ qc + m Σ q)), and half sums are Σ codes of
// its first and of its last 16 columns, for weights with a scale per 16 and for offsets of codes.
//
// Rows of low sums meet weights of 7 bit, and are turned as those are (quant/int7_groups.ts). They are
//   codes · a float32 scale a group of 64 · as many float32 sums · padding to 16 bytes
// with codes of 0 behind the last where it is half a group. The scale of a group may be larger (`lowScale`): of every sixteen
// columns the positive codes of the first two of each four add up to 258 at most, so do the negative ones without their sign, and
// so do those of the last two. Then a sum of four pairs of products by codes of 0..127 fits in 16 bits, 127 · 258 = 32,766, and
// is widened a quarter as often (wasm/gen/tiles_int7.ts).

import { INT7_GROUP } from "./int7_groups.ts";

/** Values that share a scale. */
export const Q8_GROUP = 32;

/**
 * Bytes of one row of `k` values.
 *
 * @throws {RangeError} If `k` is not a positive multiple of 32.
 */
export function q8RowBytes(k: number): number {
  if (!Number.isInteger(k) || k <= 0 || k % Q8_GROUP !== 0) {
    throw new RangeError(`Cannot quantise rows of ${k} values: give a multiple of ${Q8_GROUP}`);
  }
  return Math.ceil((k + 12 * (k / Q8_GROUP)) / 16) * 16;
}

/** Columns that a row of low sums of `k` values has, whole groups. */
export function lowColumns(k: number): number {
  return Math.ceil(k / INT7_GROUP) * INT7_GROUP;
}

/** Bytes of one row of low sums of `k` values. */
export function lowRowBytes(k: number): number {
  return Math.ceil(lowColumns(k) * (1 + 8 / INT7_GROUP) / 16) * 16;
}

/** Eight codes of a sign are 254 at most before they are rounded, which adds a half to each; twice, for the larger of two signs. */
const LOW_PART = Math.fround(1 / 508);

/** Smallest normal float32: below it a scale has lost bits. */
const LEAST_SCALE = 2 ** -126;

/**
 * The scale of a group in a row of low sums.
 *
 * @param values Of the group, turned.
 * @param scale What it would be without.
 */
export function lowScale(values: Float32Array, scale: number): number {
  const { abs, fround, max } = Math;
  let largest = 0;
  for (let i = 0; i < values.length; i += 16) {
    for (const at of [i, i + 2]) {
      const sum = (of: (value: number) => number) => {
        const part = (j: number) => of(values[at + j]!);
        const four = (j: number) =>
          fround(fround(part(j) + part(j + 4)) + fround(part(j + 8) + part(j + 12)));
        return fround(four(0) + four(1));
      };
      // Twice the larger of what the positive and the negative ones add up to.
      const twice = fround(sum(abs) + abs(sum((value) => value)));
      largest = max(largest, fround(twice * LOW_PART));
    }
  }
  const low = max(scale, largest);
  return low < LEAST_SCALE ? 0 : low;
}
