// IQ2_XXS: 256 values in 66 bytes, 2.0625 bits a value. f16 d, then 8 bytes for each 32 values: four
// grid points (a byte each, 8 values a point), four times 7 sign bits, and a 4-bit scale on top.
// x = d * (scale + 1/2) / 4 * +-point.

import type { NumberFormat } from "../format.ts";
import { definePoints, HALF_AT_0 } from "../points.ts";

/** 2-bit vector codes from 256 points, with signs. */
export const iq2_xxs: NumberFormat = definePoints({
  ...{ name: "IQ2_XXS", ggmlType: 16, blockBytes: 66, grid: "iq2_xxs", factor: 0.25 },
  index: [{ at: 8 * 2, bits: 8, step: 8, group: 64 }],
  signs: { at: 8 * 6, bits: 7, step: 7, group: 64 },
  scales: { kind: "n8", at: 8 * 6 + 28, bits: 4, step: 0, group: 64 },
  d: HALF_AT_0,
});
