// Q5_K: 256 values in 176 bytes, 5.5 bits a value. f16 d, f16 dmin, 12 bytes of 6-bit scales and minima
// (k_scales.ts), 32 bytes of fifth bits (bit s of byte l is value 32 s + l's), 128 bytes of nibbles as
// in Q4_K. x = d * scale * q - dmin * min.

import { defineBlockFormat } from "../block_format.ts";
import type { NumberFormat } from "../format.ts";
import { superBlockEncoder } from "../k_affine.ts";
import { pairedScales } from "../k_scales.ts";

/** 5-bit affine, 8 sub-blocks of 32 under one super-scale. */
export const q5_k: NumberFormat = defineBlockFormat({
  ...{ name: "Q5_K", ggmlType: 13, blockSize: 256, blockBytes: 176 },
  codes: [{ at: 48, bits: 4, run: 32 }, { at: 16, bits: 1, run: 32 }],
  scales: { kind: "k", floats: [0, 2], integers: pairedScales },
  grid: { codes: 32 },
  usesImportance: true,
  bounds: { error: 1 / 15, settles: true },
  encode: superBlockEncoder(176, { maxCode: 31, from: -0.5, trials: 15, absolute: false }),
});
