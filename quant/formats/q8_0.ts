// Q8_0: 32 values in 34 bytes, 8.5 bits a value. f16 scale d, then 32 signed bytes. x = d * q.
// Codes lie in -127..127: -128 is legal in a file and decodes, but is never written.

import { inverseScale, roundHalfAway, signedExtreme } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";

/** 8-bit symmetric, one scale for 32 values. */
export const q8_0: NumberFormat = {
  name: "Q8_0",
  ggmlType: 8,
  blockSize: 32,
  blockBytes: 34,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 34, o += 32) {
      const d = readF16(bytes, b);
      for (let j = 0; j < 32; j++) out[o + j] = d * ((bytes[b + 2 + j]! << 24) >> 24);
    }
  },
  grid: {
    codes: 255,
    write(codes, out, at) {
      for (let j = 0; j < 32; j++) out[at + 2 + j] = codes[j]! - 127;
    },
  },
  encode(values, out) {
    for (let b = 0, o = 0; o < values.length; b += 34, o += 32) {
      const d = Math.fround(Math.abs(signedExtreme(values, o, 32)) / 127);
      const inverse = inverseScale(d);
      writeF16(out, b, d);
      for (let j = 0; j < 32; j++) {
        out[b + 2 + j] = roundHalfAway(Math.fround(values[o + j]! * inverse));
      }
    }
  },
};
