// Rows of activations in signed 16 bit, as a product that is the last of its graph takes them with precision "fast": nothing
// behind it evens out what 8 bit lose. A kernel makes them of floats by itself, in its scratch memory. A row of K values, K a
// multiple of 32, is
//   K int16 codes · K/32 float32 scales
// where a group of 32 has scale = max|x| / 32767 and code = x / scale to nearest, ties to even.

import { Q8_GROUP } from "./q8_activation.ts";

/** Largest code. */
export const Q16_MOST = 32767;

/** Bytes of one row of `k` values, a multiple of 32. */
export function q16RowBytes(k: number): number {
  return 2 * k + 4 * (k / Q8_GROUP);
}
