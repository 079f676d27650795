// Rows of activations in signed 8 bit, as they lie in memory between quantize and matmul
// (spec LF-3, MD-11). A row of K values, K a multiple of 32, is
//   K int8 codes · K/32 float32 scales · K/32 float32 sums · K/32 pairs of int16 half sums · padding to 16 bytes
// where a group of 32 has scale = max|x| / 127 (NaN if a value is not finite), code = x / scale to nearest, ties to even,
// sum = scale · Σ codes (weights with minima are multiplied by it: y = s(d Σ qc + m Σ q)), and half sums are Σ codes of
// its first and of its last 16 columns, for weights with a scale per 16 and for offsets of codes.
//
// Rows of low sums are the same with a scale that may be larger (`lowScale`): of every eight columns the positive codes of
// columns 0, 1, 4 and 5 add up to 258 at most, so do the negative ones without their sign, and so do those of columns 2, 3,
// 6 and 7. Then a sum of two pairs of products by codes of 0..127 fits in 16 bits, 127 · 258 = 32,766, and is widened half
// as often (wasm/gen/tiles_int7.ts).

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

/** What four magnitudes of one sign may add up to, in scales; rounding adds a half to each. */
const LOW_SUM = 256;

/** Smallest normal float32: below it a scale has lost bits. */
const LEAST_SCALE = 2 ** -126;

/**
 * The scale of a group in a row of low sums.
 *
 * @param values Of the group.
 * @param scale What it would be without.
 */
export function lowScale(values: Float32Array, scale: number): number {
  let largest = 0;
  for (const sign of [1, -1]) {
    // Divided before they are added, so that large ones do not overflow.
    const part = (i: number) => Math.max(sign * Math.fround(values[i]! / LOW_SUM), 0);
    const two = (i: number) => Math.fround(part(i) + part(i + 4));
    for (let i = 0; i < values.length; i += 8) {
      for (const at of [i, i + 2]) largest = Math.max(largest, Math.fround(two(at) + two(at + 1)));
    }
  }
  const low = Math.max(scale, largest);
  return low < LEAST_SCALE ? 0 : low;
}
