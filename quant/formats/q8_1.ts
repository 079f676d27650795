// Q8_1: 32 values in 36 bytes. f16 scale d, f16 s = d * sum of codes, 32 signed bytes. x = d * q.
// ggml quantises activations to it and never stores it in files; s serves dot products only.

import { inverseScale, roundHalfAway, signedExtreme } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";

/** 8-bit symmetric with the block's sum, for activations. */
export const q8_1: NumberFormat = {
  name: "Q8_1",
  ggmlType: 9,
  blockSize: 32,
  blockBytes: 36,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 36, o += 32) {
      const d = readF16(bytes, b);
      for (let j = 0; j < 32; j++) out[o + j] = d * ((bytes[b + 4 + j]! << 24) >> 24);
    }
  },
  encode(values, out) {
    for (let b = 0, o = 0; o < values.length; b += 36, o += 32) {
      const d = Math.fround(Math.abs(signedExtreme(values, o, 32)) / 127);
      const inverse = inverseScale(d);
      let sum = 0;
      for (let j = 0; j < 32; j++) {
        const q = roundHalfAway(Math.fround(values[o + j]! * inverse));
        out[b + 4 + j] = q;
        sum += q;
      }
      writeF16(out, b, d);
      writeF16(out, b + 2, Math.fround(sum * d));
    }
  },
};
