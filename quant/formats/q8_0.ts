// Q8_0: 32 values in 34 bytes, 8.5 bits a value. f16 scale d, then 32 signed bytes. x = d * q.
// Codes lie in -127..127: -128 is legal in a file and decodes, but is never written.

import { defineBlockFormat } from "../block_format.ts";
import { byteEncoder } from "../encoders.ts";
import type { NumberFormat } from "../format.ts";

/** 8-bit symmetric, one scale for 32 values. */
export const q8_0: NumberFormat = defineBlockFormat({
  ...{ name: "Q8_0", ggmlType: 8, blockSize: 32, blockBytes: 34 },
  codes: [{ at: 2, bits: 8, run: 1 }],
  signed: true,
  scales: { kind: "d", floats: [0] },
  grid: { codes: 255, first: -127 },
  bounds: { error: 1 / 254 + 0.0005 },
  encode: byteEncoder(2),
});
