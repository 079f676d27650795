// The 12 bytes in which Q4_K and Q5_K keep eight 6-bit scales and eight 6-bit minima. Bytes 0..3 hold
// scales 0..3 and bytes 4..7 minima 0..3 in their low six bits; bytes 8..11 hold the low nibbles of
// scale and minimum 4..7, whose high bit pairs are the top bits of bytes 0..7.

/** Scale code 0..63 of sub-block `i` (0..7); `at` is the offset of the 12 bytes. */
export function scaleCode(bytes: Uint8Array, at: number, i: number): number {
  if (i < 4) return bytes[at + i]! & 63;
  return (bytes[at + i + 4]! & 15) | ((bytes[at + i - 4]! >> 6) << 4);
}

/** Minimum code 0..63 of sub-block `i` (0..7); `at` is the offset of the 12 bytes. */
export function minimumCode(bytes: Uint8Array, at: number, i: number): number {
  if (i < 4) return bytes[at + i + 4]! & 63;
  return (bytes[at + i + 4]! >> 4) | ((bytes[at + i]! >> 6) << 4);
}

/** Scale and minimum of all sub-blocks in turn; the 12 bytes stand behind two half floats. */
export function pairedScales(bytes: Uint8Array, at: number, out: Uint8Array, to: number): void {
  for (let i = 0; i < 8; i++) {
    out[to + 2 * i] = scaleCode(bytes, at + 4, i);
    out[to + 2 * i + 1] = minimumCode(bytes, at + 4, i);
  }
}

/** Writes scale and minimum codes (0..63 each) of all eight sub-blocks. */
export function writeScales(
  bytes: Uint8Array,
  at: number,
  scales: ArrayLike<number>,
  minima: ArrayLike<number>,
): void {
  for (let i = 0; i < 4; i++) {
    bytes[at + i] = scales[i]! | ((scales[i + 4]! >> 4) << 6);
    bytes[at + i + 4] = minima[i]! | ((minima[i + 4]! >> 4) << 6);
    bytes[at + i + 8] = (scales[i + 4]! & 15) | ((minima[i + 4]! & 15) << 4);
  }
}
