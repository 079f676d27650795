// Q4_0: 32 values in 18 bytes, 4.5 bits a value. f16 scale d, then 16 bytes: byte j holds value j in its
// low nibble and value j + 16 in its high one. x = d * (q - 8).
// The scale maps the value furthest from zero to code 0 (= -8), so that extreme is met exactly.

import { inverseScale, signedExtreme } from "../extremes.ts";
import { fitSymmetric } from "../fit.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";
import { writeHalves } from "../nibbles.ts";

/** 4-bit symmetric, one scale for 32 values. */
export const q4_0: NumberFormat = {
  name: "Q4_0",
  ggmlType: 2,
  blockSize: 32,
  blockBytes: 18,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 18, o += 32) {
      const d = readF16(bytes, b);
      for (let j = 0; j < 16; j++) {
        const q = bytes[b + 2 + j]!;
        out[o + j] = d * ((q & 15) - 8);
        out[o + j + 16] = d * ((q >> 4) - 8);
      }
    }
  },
  grid: { codes: 16, write: (codes, out, at) => writeHalves(codes, out, at + 2) },
  usesImportance: true,
  encode(values, out, options = {}) {
    const weights = importanceWeights(values, options);
    const codes = new Uint8Array(weights ? values.length : 0);
    for (let b = 0, o = 0; o < values.length; b += 18, o += 32) {
      const d = weights
        ? fitSymmetric(values, o, 32, 8, codes, weights)
        : Math.fround(signedExtreme(values, o, 32) / -8);
      const inverse = inverseScale(d);
      writeF16(out, b, d);
      for (let j = 0; j < 16; j++) {
        const low = code(values[o + j]!, inverse);
        out[b + 2 + j] = low | (code(values[o + j + 16]!, inverse) << 4);
      }
    }
  },
};

function code(value: number, inverse: number): number {
  const shifted = Math.fround(Math.fround(value * inverse) + 8.5);
  return Math.max(0, Math.min(15, Math.trunc(shifted)));
}
