// TQ1_0: 256 ternary values in 54 bytes, 1.6875 bits a value. 48 bytes with five base-3 digits each, 4
// bytes with four, f16 d. x = d * (digit - 1).
// A byte is the digits as a fraction of 3^5, scaled to 256 and rounded up, so that the digits come out
// from the most significant by multiplying with 3 and taking what exceeds 8 bits. Digit n of bytes
// 0..31 is value 32 n + byte, of bytes 32..47 value 160 + 16 n + byte, of bytes 48..51 240 + 4 n + byte.

import type { CodePacking } from "../fields.ts";
import { defineBlockFormat } from "../block_format.ts";
import { ternaryEncoder } from "../encoders.ts";
import type { NumberFormat } from "../format.ts";

const POWERS = [1, 3, 9, 27, 81] as const;

// [first byte, bytes, digits a byte, first value]
const PARTS = [[0, 32, 5, 0], [32, 16, 5, 160], [48, 4, 4, 240]] as const;

const packing: CodePacking = {
  ...{ name: "base_3", bits: 2, at: 0 },
  pack(codes, out, at) {
    for (const [first, width, digits, start] of PARTS) {
      for (let l = 0; l < width; l++) {
        let number = 0;
        for (let n = 0; n < 5; n++) {
          number = number * 3 + (n < digits ? codes[start + n * width + l]! : 0);
        }
        out[at + first + l] = Math.floor((number * 256 + 242) / 243);
      }
    }
  },
  unpack(bytes, at, codes) {
    for (const [first, width, digits, start] of PARTS) {
      for (let n = 0; n < digits; n++) {
        for (let l = 0; l < width; l++) {
          const rest = (bytes[at + first + l]! * POWERS[n]!) & 0xff;
          codes[start + n * width + l] = (rest * 3) >> 8;
        }
      }
    }
  },
};

/** Ternary, five values a byte, one scale for 256. */
export const tq1_0: NumberFormat = defineBlockFormat({
  ...{ name: "TQ1_0", ggmlType: 34, blockSize: 256, blockBytes: 54 },
  codes: packing,
  offset: 1,
  scales: { kind: "d", floats: [52] },
  bounds: { error: 1 / 2 + 0.001 },
  encode: ternaryEncoder({ bytes: 54, scaleAt: 52 }),
});
