// TQ1_0: 256 ternary values in 54 bytes, 1.6875 bits a value. 48 bytes with five base-3 digits each, 4
// bytes with four, f16 d. x = d * (digit - 1).
// A byte is the digits as a fraction of 3^5, scaled to 256 and rounded up, so that the digits come out
// from the most significant by multiplying with 3 and taking what exceeds 8 bits. Digit n of bytes
// 0..31 is value 32 n + byte, of bytes 32..47 value 160 + 16 n + byte, of bytes 48..51 240 + 4 n + byte.

import { inverseScale, roundHalfAway, signedExtreme } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";

const POWERS = [1, 3, 9, 27, 81] as const;

// [first byte, bytes, digits a byte, first value]
const PARTS = [[0, 32, 5, 0], [32, 16, 5, 160], [48, 4, 4, 240]] as const;

/** Ternary, five values a byte, one scale for 256. */
export const tq1_0: NumberFormat = {
  name: "TQ1_0",
  ggmlType: 34,
  blockSize: 256,
  blockBytes: 54,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 54, o += 256) {
      const d = readF16(bytes, b + 52);
      for (const [first, width, digits, start] of PARTS) {
        for (let n = 0; n < digits; n++) {
          for (let l = 0; l < width; l++) {
            const rest = (bytes[b + first + l]! * POWERS[n]!) & 0xff;
            out[o + start + n * width + l] = d * (((rest * 3) >> 8) - 1);
          }
        }
      }
    }
  },
  encode(values, out) {
    for (let b = 0, o = 0; o < values.length; b += 54, o += 256) {
      const d = Math.abs(signedExtreme(values, o, 256));
      const inverse = inverseScale(d);
      writeF16(out, b + 52, d);
      for (const [first, width, digits, start] of PARTS) {
        for (let l = 0; l < width; l++) {
          let number = 0;
          for (let n = 0; n < 5; n++) {
            const value = n < digits ? values[o + start + n * width + l]! : 0;
            const digit = n < digits ? roundHalfAway(Math.fround(value * inverse)) + 1 : 0;
            number = number * 3 + digit;
          }
          out[b + first + l] = Math.floor((number * 256 + 242) / 243);
        }
      }
    }
  },
};
