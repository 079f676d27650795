// Q4_K: 256 values in 144 bytes, 4.5 bits a value. f16 d, f16 dmin, 12 bytes of 6-bit scales and minima
// (k_scales.ts), 128 bytes of nibbles: each 32 bytes hold 32 values low and the next 32 high.
// x = d * scale * q - dmin * min.

import { defineBlockFormat } from "../block_format.ts";
import type { NumberFormat } from "../format.ts";
import { superBlockEncoder } from "../k_affine.ts";
import { pairedScales } from "../k_scales.ts";

/** 4-bit affine, 8 sub-blocks of 32 under one super-scale. */
export const q4_k: NumberFormat = defineBlockFormat({
  ...{ name: "Q4_K", ggmlType: 12, blockSize: 256, blockBytes: 144 },
  codes: [{ at: 16, bits: 4, run: 32 }],
  scales: { kind: "k", floats: [0, 2], integers: pairedScales },
  grid: { codes: 16 },
  usesImportance: true,
  bounds: { error: 1 / 8, settles: true },
  encode: superBlockEncoder(144, { maxCode: 15, from: -1, trials: 20, absolute: false }),
});
