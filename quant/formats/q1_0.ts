// Q1_0: 128 values in 18 bytes, 1.125 bits a value. f16 magnitude d, then a bit for each value, low bits
// first: set is +d, clear is -d. The encoder takes the mean magnitude.

import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";

/** Signs only, one magnitude for 128 values. */
export const q1_0: NumberFormat = {
  name: "Q1_0",
  ggmlType: 41,
  blockSize: 128,
  blockBytes: 18,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 18, o += 128) {
      const d = readF16(bytes, b);
      for (let j = 0; j < 128; j++) {
        out[o + j] = (bytes[b + 2 + (j >> 3)]! >> (j & 7)) & 1 ? d : -d;
      }
    }
  },
  encode(values, out) {
    for (let b = 0, o = 0; o < values.length; b += 18, o += 128) {
      let sum = 0;
      for (let j = 0; j < 128; j++) sum = Math.fround(sum + Math.abs(values[o + j]!));
      writeF16(out, b, Math.fround(sum / 128));
      out.fill(0, b + 2, b + 18);
      for (let j = 0; j < 128; j++) {
        if (values[o + j]! >= 0) out[b + 2 + (j >> 3)]! |= 1 << (j & 7);
      }
    }
  },
};
