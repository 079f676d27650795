// Q5_1: 32 values in 24 bytes, 6 bits a value. f16 scale d, f16 minimum m, 32 fifth bits (bit i is
// value i's), then 16 bytes of low nibbles: value j low, value j + 16 high. x = d * q + m.

import { defineBlockFormat } from "../block_format.ts";
import { affineEncoder } from "../encoders.ts";
import type { NumberFormat } from "../format.ts";

/** 5-bit affine, scale and minimum for 32 values. */
export const q5_1: NumberFormat = defineBlockFormat({
  ...{ name: "Q5_1", ggmlType: 7, blockSize: 32, blockBytes: 24 },
  codes: [{ at: 8, bits: 4, run: 16 }, { at: 4, bits: 1, run: 1 }],
  scales: { kind: "dm", floats: [0, 2] },
  grid: { codes: 32 },
  usesImportance: true,
  bounds: { error: 1 / 31 + 0.002 },
  encode: affineEncoder(24, 31),
});
