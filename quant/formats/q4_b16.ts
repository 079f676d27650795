// Q4_B16 of Inferflow: 16 values in 10 bytes, 5 bits a value. The header is two bytes of fixed point: base
// in hundredths from -1 on, scale in thousandths; then a nibble a value, the even one low.
// So it holds values between -1 and about 5 only, and in steps of 0.001 at least; a block that does not
// fit is refused. Codes are chosen for the base and scale as stored.

import { defineBlockFormat } from "../block_format.ts";
import { maximum, minimum } from "../extremes.ts";
import { checkFinite } from "../finite.ts";
import type { NumberFormat } from "../format.ts";

/** 4-bit, one byte each of base and scale for 16 values. */
export const q4_b16: NumberFormat = defineBlockFormat({
  ...{ name: "Q4_B16", blockSize: 16, blockBytes: 10 },
  codes: [{ at: 2, bits: 4, run: 1 }],
  scales: { kind: "b16", integers: 0 },
  grid: { codes: 16 },
  bounds: { largest: 1, step: 0.005 },
  encode({ values, out, writeCodes }) {
    checkFinite("Q4_B16", values);
    const codes = new Uint8Array(16);
    for (let b = 0, o = 0; o < values.length; b += 10, o += 16) {
      const min = minimum(values, o, 16);
      const baseCode = Math.round(min * 100 + 100);
      const scaleCode = Math.round((maximum(values, o, 16) - min) / 15 * 1000);
      if (baseCode < 0 || baseCode > 255 || scaleCode > 255) {
        throw new RangeError(
          `Cannot store the block from value ${o} as Q4_B16: it begins at ${min} with steps of ` +
            `${scaleCode / 1000}, and -1 to 1.55 and steps up to 0.255 can be stored`,
        );
      }
      const base = (baseCode - 100) / 100;
      const inverse = scaleCode === 0 ? 0 : 1000 / scaleCode;
      out[b] = baseCode;
      out[b + 1] = scaleCode;
      for (let j = 0; j < 16; j++) {
        codes[j] = Math.max(0, Math.min(15, Math.round((values[o + j]! - base) * inverse)));
      }
      writeCodes(codes, out, b);
    }
  },
});
