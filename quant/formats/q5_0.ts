// Q5_0: 32 values in 22 bytes, 5.5 bits a value. f16 scale d, 32 fifth bits (bit i is value i's), then
// 16 bytes of low nibbles as in Q4_0: value j low, value j + 16 high. x = d * (q - 16).

import { inverseScale, signedExtreme } from "../extremes.ts";
import { fitSymmetric } from "../fit.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";
import { writeFiveBits } from "../nibbles.ts";

/** 5-bit symmetric, one scale for 32 values. */
export const q5_0: NumberFormat = {
  name: "Q5_0",
  ggmlType: 6,
  blockSize: 32,
  blockBytes: 22,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 22, o += 32) {
      const d = readF16(bytes, b);
      for (let j = 0; j < 16; j++) {
        const q = bytes[b + 6 + j]!;
        const highOfLow = (bytes[b + 2 + (j >> 3)]! >> (j & 7)) & 1;
        const highOfHigh = (bytes[b + 4 + (j >> 3)]! >> (j & 7)) & 1;
        out[o + j] = d * (((q & 15) | (highOfLow << 4)) - 16);
        out[o + j + 16] = d * (((q >> 4) | (highOfHigh << 4)) - 16);
      }
    }
  },
  grid: { codes: 32, write: (codes, out, at) => writeFiveBits(codes, out, at + 2) },
  usesImportance: true,
  encode(values, out, options = {}) {
    const weights = importanceWeights(values, options);
    const codes = new Uint8Array(weights ? values.length : 0);
    for (let b = 0, o = 0; o < values.length; b += 22, o += 32) {
      const d = weights
        ? fitSymmetric(values, o, 32, 16, codes, weights)
        : Math.fround(signedExtreme(values, o, 32) / -16);
      const inverse = inverseScale(d);
      writeF16(out, b, d);
      out.fill(0, b + 2, b + 6);
      for (let j = 0; j < 16; j++) {
        const low = code(values[o + j]!, inverse);
        const high = code(values[o + j + 16]!, inverse);
        out[b + 6 + j] = (low & 15) | ((high & 15) << 4);
        out[b + 2 + (j >> 3)]! |= (low >> 4) << (j & 7);
        out[b + 4 + (j >> 3)]! |= (high >> 4) << (j & 7);
      }
    }
  },
};

function code(value: number, inverse: number): number {
  const shifted = Math.fround(Math.fround(value * inverse) + 16.5);
  return Math.max(0, Math.min(31, Math.trunc(shifted)));
}
