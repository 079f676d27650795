// Q5_0: 32 values in 22 bytes, 5.5 bits a value. f16 scale d, 32 fifth bits (bit i is value i's), then
// 16 bytes of low nibbles as in Q4_0: value j low, value j + 16 high. x = d * (q - 16).

import { defineBlockFormat } from "../block_format.ts";
import { symmetricEncoder } from "../encoders.ts";
import type { NumberFormat } from "../format.ts";

/** 5-bit symmetric, one scale for 32 values. */
export const q5_0: NumberFormat = defineBlockFormat({
  ...{ name: "Q5_0", ggmlType: 6, blockSize: 32, blockBytes: 22 },
  codes: [{ at: 6, bits: 4, run: 16 }, { at: 2, bits: 1, run: 1 }],
  offset: 16,
  scales: { kind: "d", floats: [0] },
  grid: { codes: 32 },
  usesImportance: true,
  bounds: { error: 1 / 16 + 0.001 },
  encode: symmetricEncoder(22, 16),
});
