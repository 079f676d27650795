// Q2_K: 256 values in 84 bytes, 2.625 bits a value. 16 bytes, one for 16 values: scale in the low
// nibble, minimum in the high; 64 bytes of 2-bit codes; f16 d, f16 dmin. x = d * scale * q - dmin * min.
// Codes of each half of 128 share 32 bytes: byte l holds values l, l + 32, l + 64, l + 96, low bits first.

import type { NumberFormat } from "./format.ts";
import { readF16 } from "./half.ts";

/** 2-bit affine, 16 sub-blocks of 16 under one super-scale. */
export const q2_k: NumberFormat = {
  name: "Q2_K",
  ggmlType: 10,
  blockSize: 256,
  blockBytes: 84,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 84, o += 256) {
      const d = readF16(bytes, b + 80);
      const dmin = readF16(bytes, b + 82);
      for (let sub = 0; sub < 16; sub++) {
        const packed = bytes[b + sub]!;
        const scale = d * (packed & 15);
        const min = dmin * (packed >> 4);
        const codes = b + 16 + (sub >> 3) * 32 + (sub & 1) * 16;
        const shift = sub & 6;
        for (let l = 0; l < 16; l++) {
          // d has 11 significant bits, scale 4 and q 2: every product is exact in float32, here and in
          // all formats of this family. Only the subtraction rounds, at the store.
          out[o + sub * 16 + l] = scale * ((bytes[codes + l]! >> shift) & 3) - min;
        }
      }
    }
  },
};
