// IQ1_S: 256 values in 50 bytes, 1.5625 bits a value. f16 d, 32 low bytes of grid points (8 values
// each), then 16 bits for each 32 values: the points' 3 high bits, a 3-bit scale, and on top the sign of
// a shift by 1/8. x = d * (2 * scale + 1) * (point +- 1/8), with ternary points.

import type { NumberFormat } from "../format.ts";
import { definePoints, HALF_AT_0 } from "../points.ts";

/** Ternary vector codes from 2048 points, shifted, scale for 32 values. */
export const iq1_s: NumberFormat = definePoints({
  ...{ name: "IQ1_S", ggmlType: 19, blockBytes: 50, grid: "iq1", factor: 2 },
  index: [{ at: 8 * 2, bits: 8, step: 8, group: 32 }, { at: 8 * 34, bits: 3, step: 3, group: 16 }],
  shifts: { at: 8 * 34 + 15, bits: 1, step: 0, group: 16 },
  scales: { kind: "n8", at: 8 * 34 + 12, bits: 3, step: 0, group: 16 },
  d: HALF_AT_0,
});
