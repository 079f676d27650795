// Q5_1: 32 values in 24 bytes, 6 bits a value. f16 scale d, f16 minimum m, 32 fifth bits (bit i is
// value i's), then 16 bytes of low nibbles: value j low, value j + 16 high. x = d * q + m.

import { inverseScale, maximum, minimum } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";
import { createAffineFitter, importanceWeights } from "../importance.ts";
import { writeFiveBits } from "../nibbles.ts";

/** 5-bit affine, scale and minimum for 32 values. */
export const q5_1: NumberFormat = {
  name: "Q5_1",
  ggmlType: 7,
  blockSize: 32,
  blockBytes: 24,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 24, o += 32) {
      const d = readF16(bytes, b);
      const m = readF16(bytes, b + 2);
      for (let j = 0; j < 16; j++) {
        const q = bytes[b + 8 + j]!;
        const highOfLow = (bytes[b + 4 + (j >> 3)]! >> (j & 7)) & 1;
        const highOfHigh = (bytes[b + 6 + (j >> 3)]! >> (j & 7)) & 1;
        out[o + j] = d * ((q & 15) | (highOfLow << 4)) + m;
        out[o + j + 16] = d * ((q >> 4) | (highOfHigh << 4)) + m;
      }
    }
  },
  grid: { codes: 32, write: (codes, out, at) => writeFiveBits(codes, out, at + 4) },
  usesImportance: true,
  encode(values, out, options = {}) {
    const weights = importanceWeights(values, options);
    const range = weights ? createAffineFitter(weights, 31) : rangeOf;
    for (let b = 0, o = 0; o < values.length; b += 24, o += 32) {
      const { d, min } = range(values, o);
      const inverse = inverseScale(d);
      writeF16(out, b, d);
      writeF16(out, b + 2, min);
      out.fill(0, b + 4, b + 8);
      for (let j = 0; j < 16; j++) {
        const low = code(values[o + j]!, min, inverse);
        const high = code(values[o + j + 16]!, min, inverse);
        out[b + 8 + j] = (low & 15) | ((high & 15) << 4);
        out[b + 4 + (j >> 3)]! |= (low >> 4) << (j & 7);
        out[b + 6 + (j >> 3)]! |= (high >> 4) << (j & 7);
      }
    }
  },
};

function rangeOf(values: Float32Array, start: number): { d: number; min: number } {
  const min = minimum(values, start, 32);
  return { d: Math.fround(Math.fround(maximum(values, start, 32) - min) / 31), min };
}

function code(value: number, min: number, inverse: number): number {
  const scaled = Math.fround(Math.fround(value - min) * inverse);
  return Math.max(0, Math.min(31, Math.trunc(Math.fround(scaled + 0.5))));
}
