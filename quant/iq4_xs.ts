// IQ4_XS: 256 values in 136 bytes, 4.25 bits a value. f16 d, 16 bits with the high pairs of eight 6-bit
// scales, 4 bytes with their low nibbles, then 128 bytes: 16 for each 32 values, value j low nibble,
// value j + 16 high. x = d * (scale - 32) * level, with the levels of IQ4_NL.

import type { NumberFormat } from "./format.ts";
import { readF16 } from "./half.ts";
import { IQ4_LEVELS } from "./iq4_nl.ts";

/** 4-bit on a non-linear scale, 8 sub-blocks of 32 under one super-scale. */
export const iq4_xs: NumberFormat = {
  name: "IQ4_XS",
  ggmlType: 23,
  blockSize: 256,
  blockBytes: 136,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 136, o += 256) {
      const d = readF16(bytes, b);
      const high = bytes[b + 2]! | (bytes[b + 3]! << 8);
      for (let sub = 0; sub < 8; sub++) {
        const low = (bytes[b + 4 + (sub >> 1)]! >> (4 * (sub & 1))) & 15;
        const scale = d * ((low | (((high >> (2 * sub)) & 3) << 4)) - 32);
        for (let j = 0; j < 16; j++) {
          const q = bytes[b + 8 + sub * 16 + j]!;
          out[o + sub * 32 + j] = scale * IQ4_LEVELS[q & 15]!;
          out[o + sub * 32 + j + 16] = scale * IQ4_LEVELS[q >> 4]!;
        }
      }
    }
  },
};
