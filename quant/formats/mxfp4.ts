// MXFP4: 32 values in 17 bytes, 4.25 bits a value. One E8M0 exponent e, then 16 bytes of E2M1 codes:
// value j low, value j + 16 high. x = 2^(e - 128) * doubled E2M1 value.
// OCP Microscaling Formats (MX) v1.0. As in ggml, e = 255 is a scale like any other and not NaN.

import { defineBlockFormat } from "../block_format.ts";
import { E2M1_DOUBLED, nearestE2m1 } from "../e2m1.ts";
import { signedExtreme } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";

/** 4-bit float, one power of two for 32 values. */
export const mxfp4: NumberFormat = defineBlockFormat({
  ...{ name: "MXFP4", ggmlType: 39, blockSize: 32, blockBytes: 17 },
  codes: [{ at: 1, bits: 4, run: 16 }],
  levels: E2M1_DOUBLED,
  scales: { kind: "e8", integers: 0 },
  bounds: { error: 1 / 4, relative: 1 / 4 },
  encode({ values, out, writeCodes }) {
    const codes = new Uint8Array(32);
    for (let b = 0, o = 0; o < values.length; b += 17, o += 32) {
      const largest = Math.abs(signedExtreme(values, o, 32));
      // The largest E2M1 value is 1.5 * 2^2, hence the 2.
      const e = largest === 0 ? 0 : Math.max(0, Math.min(254, exponentOf(largest) - 2 + 127));
      const d = 2 ** (e - 128);
      out[b] = e;
      for (let j = 0; j < 32; j++) codes[j] = nearestE2m1(values[o + j]!, d);
      writeCodes(codes, out, b);
    }
  },
});

function exponentOf(value: number): number {
  // log2f, as in ggml: just below a power of two it rounds up to it.
  return Math.floor(Math.fround(Math.log2(value)));
}
