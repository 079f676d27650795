// Q4_0: 32 values in 18 bytes, 4.5 bits a value. f16 scale d, then 16 bytes: byte j holds value j in its
// low nibble and value j + 16 in its high one. x = d * (q - 8).
// The scale maps the value furthest from zero to code 0 (= -8), so that extreme is met exactly.

import { defineBlockFormat } from "../block_format.ts";
import { symmetricEncoder } from "../encoders.ts";
import type { NumberFormat } from "../format.ts";

/** 4-bit symmetric, one scale for 32 values. */
export const q4_0: NumberFormat = defineBlockFormat({
  ...{ name: "Q4_0", ggmlType: 2, blockSize: 32, blockBytes: 18 },
  codes: [{ at: 2, bits: 4, run: 16 }],
  offset: 8,
  scales: { kind: "d", floats: [0] },
  grid: { codes: 16 },
  usesImportance: true,
  bounds: { error: 1 / 8 + 0.001 },
  encode: symmetricEncoder(18, 8),
});
