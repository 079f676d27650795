// Q1_0: 128 values in 18 bytes, 1.125 bits a value. f16 magnitude d, then a bit for each value, low bits
// first: set is +d, clear is -d. The encoder takes the mean magnitude.

import { defineBlockFormat } from "../block_format.ts";
import type { NumberFormat } from "../format.ts";
import { writeF16 } from "../half.ts";

/** Signs only, one magnitude for 128 values. */
export const q1_0: NumberFormat = defineBlockFormat({
  ...{ name: "Q1_0", ggmlType: 41, blockSize: 128, blockBytes: 18 },
  codes: [{ at: 2, bits: 1, run: 1 }],
  levels: Int8Array.of(-1, 1),
  scales: { kind: "d", floats: [0] },
  bounds: { error: 2 },
  encode({ values, out, writeCodes }) {
    const codes = new Uint8Array(128);
    for (let b = 0, o = 0; o < values.length; b += 18, o += 128) {
      let sum = 0;
      for (let j = 0; j < 128; j++) sum = Math.fround(sum + Math.abs(values[o + j]!));
      writeF16(out, b, Math.fround(sum / 128));
      for (let j = 0; j < 128; j++) codes[j] = values[o + j]! >= 0 ? 1 : 0;
      writeCodes(codes, out, b);
    }
  },
});
