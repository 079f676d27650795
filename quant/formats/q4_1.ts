// Q4_1: 32 values in 20 bytes, 5 bits a value. f16 scale d, f16 minimum m, then 16 bytes: byte j holds
// value j in its low nibble and value j + 16 in its high one. x = d * q + m, rounded to float32 twice.

import { defineBlockFormat } from "../block_format.ts";
import { affineEncoder } from "../encoders.ts";
import type { NumberFormat } from "../format.ts";

/** 4-bit affine, scale and minimum for 32 values. */
export const q4_1: NumberFormat = defineBlockFormat({
  ...{ name: "Q4_1", ggmlType: 3, blockSize: 32, blockBytes: 20 },
  codes: [{ at: 4, bits: 4, run: 16 }],
  scales: { kind: "dm", floats: [0, 2] },
  grid: { codes: 16 },
  usesImportance: true,
  bounds: { error: 1 / 15 + 0.002 },
  encode: affineEncoder(20, 15),
});
