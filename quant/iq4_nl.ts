// IQ4_NL: 32 values in 18 bytes, 4.5 bits a value. f16 scale d, then 16 bytes: value j low nibble, value
// j + 16 high. A code picks one of 16 unevenly spaced levels. x = d * level. No encoder: ggml's is a
// search that weighs values by an importance matrix.

import type { NumberFormat } from "./format.ts";
import { readF16 } from "./half.ts";

/** Levels of IQ4_NL and IQ4_XS by code. */
export const IQ4_LEVELS: Int8Array = new Int8Array([
  ...[-127, -104, -83, -65, -49, -35, -22, -10],
  ...[1, 13, 25, 38, 53, 69, 89, 113],
]);

/** 4-bit on a non-linear scale, one scale for 32 values. */
export const iq4_nl: NumberFormat = {
  name: "IQ4_NL",
  ggmlType: 20,
  blockSize: 32,
  blockBytes: 18,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 18, o += 32) {
      const d = readF16(bytes, b);
      for (let j = 0; j < 16; j++) {
        const q = bytes[b + 2 + j]!;
        out[o + j] = d * IQ4_LEVELS[q & 15]!;
        out[o + j + 16] = d * IQ4_LEVELS[q >> 4]!;
      }
    }
  },
};
