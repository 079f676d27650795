// TQ2_0: 256 ternary values in 66 bytes, 2.0625 bits a value. 64 bytes of 2-bit codes, f16 d.
// x = d * (q - 1). Codes of each half of 128 share 32 bytes: byte l holds values l, l + 32, l + 64,
// l + 96, low bits first. Code 3 (= 2 d) is legal in a file and never written.

import { inverseScale, roundHalfAway, signedExtreme } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";

/** Ternary, four values a byte, one scale for 256. */
export const tq2_0: NumberFormat = {
  name: "TQ2_0",
  ggmlType: 35,
  blockSize: 256,
  blockBytes: 66,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 66, o += 256) {
      const d = readF16(bytes, b + 64);
      for (let i = 0; i < 256; i++) {
        const q = (bytes[b + (i >> 7) * 32 + (i & 31)]! >> (2 * ((i >> 5) & 3))) & 3;
        out[o + i] = d * (q - 1);
      }
    }
  },
  encode(values, out) {
    for (let b = 0, o = 0; o < values.length; b += 66, o += 256) {
      const d = Math.abs(signedExtreme(values, o, 256));
      const inverse = inverseScale(d);
      writeF16(out, b + 64, d);
      out.fill(0, b, b + 64);
      for (let i = 0; i < 256; i++) {
        const q = roundHalfAway(Math.fround(values[o + i]! * inverse)) + 1;
        out[b + (i >> 7) * 32 + (i & 31)]! |= q << (2 * ((i >> 5) & 3));
      }
    }
  },
};
