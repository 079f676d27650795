// Q8_K: 256 values in 292 bytes. f32 scale d, 256 signed bytes, 16 int16 sums of 16 codes each. x = d * q.
// ggml quantises activations to it for the K formats and never stores it in files. The value furthest
// from zero becomes -127 or 127 with d of either sign, as in ggml.

import { defineBlockFormat } from "../block_format.ts";
import type { NumberFormat } from "../format.ts";
import { roundHalfEven, signedExtreme } from "../extremes.ts";
import { writeF32 } from "../half.ts";

/** 8-bit symmetric, one float32 scale for 256 values, with sums, for activations. */
export const q8_k: NumberFormat = defineBlockFormat({
  ...{ name: "Q8_K", ggmlType: 15, blockSize: 256, blockBytes: 292 },
  codes: [{ at: 4, bits: 8, run: 1 }],
  signed: true,
  use: "scratch",
  scales: { kind: "f", floats: [0] },
  bounds: { error: 1 / 254 + 0.0001 },
  encode({ values, out }) {
    for (let b = 0, o = 0; o < values.length; b += 292, o += 256) {
      const extreme = signedExtreme(values, o, 256);
      const inverse = extreme === 0 ? 0 : Math.fround(-127 / extreme);
      writeF32(out, b, inverse === 0 ? 0 : Math.fround(1 / inverse));
      for (let group = 0; group < 16; group++) {
        let sum = 0;
        for (let j = group * 16; j < group * 16 + 16; j++) {
          const q = Math.min(127, roundHalfEven(Math.fround(values[o + j]! * inverse)));
          out[b + 4 + j] = q;
          sum += q;
        }
        out[b + 260 + group * 2] = sum & 0xff;
        out[b + 261 + group * 2] = (sum >> 8) & 0xff;
      }
    }
  },
});
