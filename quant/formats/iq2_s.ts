// IQ2_S: 256 values in 82 bytes, 2.5625 bits a value. f16 d, 32 low bytes of grid points (8 values
// each), 32 bytes of signs, 8 bytes with the points' 2 high bits, 8 bytes of 4-bit scales, one for 16
// values. x = d * (scale + 1/2) / 4 * +-point.

import type { NumberFormat } from "../format.ts";
import { definePoints, HALF_AT_0 } from "../points.ts";

/** 2-bit vector codes from 1024 points, with signs. */
export const iq2_s: NumberFormat = definePoints({
  ...{ name: "IQ2_S", ggmlType: 22, blockBytes: 82, grid: "iq2_s", factor: 0.25 },
  index: [{ at: 8 * 2, bits: 8, step: 8, group: 32 }, { at: 8 * 66, bits: 2, step: 2, group: 8 }],
  signs: { at: 8 * 34, bits: 8, step: 8, group: 32 },
  scales: { kind: "n16", at: 8 * 74, bits: 4, step: 4, group: 8 },
  d: HALF_AT_0,
});
