// Q4_1: 32 values in 20 bytes, 5 bits a value. f16 scale d, f16 minimum m, then 16 bytes: byte j holds
// value j in its low nibble and value j + 16 in its high one. x = d * q + m, rounded to float32 twice.

import { inverseScale, maximum, minimum } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";
import { createAffineFitter, importanceWeights } from "../importance.ts";
import { writeHalves } from "../nibbles.ts";

/** 4-bit affine, scale and minimum for 32 values. */
export const q4_1: NumberFormat = {
  name: "Q4_1",
  ggmlType: 3,
  blockSize: 32,
  blockBytes: 20,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 20, o += 32) {
      const d = readF16(bytes, b);
      const m = readF16(bytes, b + 2);
      for (let j = 0; j < 16; j++) {
        const q = bytes[b + 4 + j]!;
        // d has 11 bits and q 4: the product is exact in float32, so one rounding at the store is two.
        out[o + j] = d * (q & 15) + m;
        out[o + j + 16] = d * (q >> 4) + m;
      }
    }
  },
  grid: { codes: 16, write: (codes, out, at) => writeHalves(codes, out, at + 4) },
  usesImportance: true,
  encode(values, out, options = {}) {
    const weights = importanceWeights(values, options);
    const range = weights ? createAffineFitter(weights, 15) : rangeOf;
    for (let b = 0, o = 0; o < values.length; b += 20, o += 32) {
      const { d, min } = range(values, o);
      const inverse = inverseScale(d);
      writeF16(out, b, d);
      writeF16(out, b + 2, min);
      for (let j = 0; j < 16; j++) {
        const low = code(values[o + j]!, min, inverse);
        out[b + 4 + j] = low | (code(values[o + j + 16]!, min, inverse) << 4);
      }
    }
  },
};

function rangeOf(values: Float32Array, start: number): { d: number; min: number } {
  const min = minimum(values, start, 32);
  return { d: Math.fround(Math.fround(maximum(values, start, 32) - min) / 15), min };
}

function code(value: number, min: number, inverse: number): number {
  const scaled = Math.fround(Math.fround(value - min) * inverse);
  return Math.max(0, Math.min(15, Math.trunc(Math.fround(scaled + 0.5))));
}
