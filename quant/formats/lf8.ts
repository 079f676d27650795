// LF8: the INT8 of LlamaF (equation 1), groups of 256 under one float32 scale, 8.125 bits a value.
// S = 2 max|r| / 255 uses all of -128..127; halves are rounded away from zero and the greatest value, which
// falls on 127.5, is clamped, so no error exceeds S / 2. With levels "upstream" the scale is that of
// llama2.c, max|r| / 127.
//   bytes: f32 scale, then 256 signed codes. x = S * q.

import { defineBlockFormat } from "../block_format.ts";
import { roundHalfAway, signedExtreme } from "../extremes.ts";
import { checkFinite } from "../finite.ts";
import type { NumberFormat } from "../format.ts";
import { writeF32 } from "../half.ts";

/** 8-bit symmetric, one float32 scale for 256 values. */
export const lf8: NumberFormat = defineBlockFormat({
  ...{ name: "LF8", blockSize: 256, blockBytes: 260 },
  codes: [{ at: 4, bits: 8, run: 1 }],
  signed: true,
  scales: { kind: "f", floats: [0] },
  grid: { codes: 256, first: -128 },
  bounds: { error: 1 / 255 + 0.0001, relative: 1 / 254, shrink: 1.001 / 255 },
  encode({ values, out, options: { levels = "paper" } }) {
    checkFinite("LF8", values);
    for (let b = 0, o = 0; o < values.length; b += 260, o += 256) {
      const extreme = Math.abs(signedExtreme(values, o, 256));
      const steps = levels === "paper" ? 127.5 : 127;
      writeF32(out, b, extreme / steps);
      for (let j = 0; j < 256; j++) {
        // By the unrounded scale, so that the extremes fall on 127.5 exactly.
        const code = extreme === 0 ? 0 : roundHalfAway(values[o + j]! * steps / extreme);
        out[b + 4 + j] = Math.max(-128, Math.min(127, code));
      }
    }
  },
});
