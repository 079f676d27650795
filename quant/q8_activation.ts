// Rows of activations in signed 8 bit, as they lie in memory between quantize and matmul
// (spec LF-3, MD-11). A row of K values, K a multiple of 32, is
//   K int8 codes · K/32 float32 scales · K/32 float32 sums · K/32 pairs of int16 half sums · padding to 16 bytes
// where a group of 32 has scale = max|x| / 127 (NaN if a value is not finite), code = x / scale to nearest, ties to even,
// sum = scale · Σ codes (weights with minima are multiplied by it: y = s(d Σ qc + m Σ q)), and half sums are Σ codes of
// its first and of its last 16 columns, for weights with a scale per 16 and for offsets of codes.

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
