// Bytes of an activation row quantised to 8 bit: K signed bytes, then K/32 float32 scales, then K/32
// float32 sums (scale · Σ q of the group, for weight formats with a minimum), padded to 16 bytes so that
// every row starts on a SIMD boundary.

/** Values that share a scale. */
export const Q8_GROUP = 32;

/**
 * Bytes of one row.
 *
 * @param k Values in the row, a multiple of 32.
 */
export function q8RowBytes(k: number): number {
  return Math.ceil((k + 8 * (k / Q8_GROUP)) / 16) * 16;
}
