// IQ3_XXS: 256 values in 98 bytes, 3.0625 bits a value. f16 d, 64 grid points (a byte each, 4 values a
// point), then 4 bytes for each 32 values: four times 7 sign bits for 8 values, a 4-bit scale on top.
// x = d * (scale + 1/2) / 2 * +-point.

import type { NumberFormat } from "../format.ts";
import { definePoints, HALF_AT_0 } from "../points.ts";

/** 3-bit vector codes from 256 points, with signs. */
export const iq3_xxs: NumberFormat = definePoints({
  ...{ name: "IQ3_XXS", ggmlType: 18, blockBytes: 98, grid: "iq3_xxs", factor: 0.5 },
  index: [{ at: 8 * 2, bits: 8, step: 8, group: 64 }],
  signs: { at: 8 * 66, bits: 7, step: 7, group: 32 },
  scales: { kind: "n8", at: 8 * 66 + 28, bits: 4, step: 0, group: 32 },
  d: HALF_AT_0,
});
