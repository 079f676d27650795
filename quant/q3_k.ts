// Q3_K: 256 values in 110 bytes, 3.4375 bits a value. 32 bytes of third bits (bit h of byte l is value
// 32 h + l's), 64 bytes of low 2 bits laid out as in Q2_K, 12 bytes with sixteen 6-bit scales, f16 d.
// x = d * (scale - 32) * q, where q is the low bits, less 4 if the third bit is clear.

import type { NumberFormat } from "./format.ts";
import { readF16 } from "./half.ts";

/** 3-bit symmetric, 16 sub-blocks of 16 under one super-scale. */
export const q3_k: NumberFormat = {
  name: "Q3_K",
  ggmlType: 11,
  blockSize: 256,
  blockBytes: 110,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 110, o += 256) {
      const d = readF16(bytes, b + 108);
      for (let sub = 0; sub < 16; sub++) {
        const scale = d * (scaleCode(bytes, b + 96, sub) - 32);
        const column = (sub & 1) * 16;
        const codes = b + 32 + (sub >> 3) * 32 + column;
        const shift = sub & 6;
        for (let l = 0; l < 16; l++) {
          const high = (bytes[b + column + l]! >> (sub >> 1)) & 1;
          out[o + sub * 16 + l] = scale * (((bytes[codes + l]! >> shift) & 3) - (high ? 0 : 4));
        }
      }
    }
  },
};

// Bytes 0..7 hold the low nibbles of scales 0..7 and 8..15, bytes 8..11 the high bit pairs, scale i's in
// byte 8 + i % 4.
function scaleCode(bytes: Uint8Array, at: number, i: number): number {
  const low = (bytes[at + (i & 7)]! >> (i < 8 ? 0 : 4)) & 15;
  const high = (bytes[at + 8 + (i & 3)]! >> (2 * (i >> 2))) & 3;
  return low | (high << 4);
}
