// IQ2_XS: 256 values in 74 bytes, 2.3125 bits a value. f16 d, 32 times 16 bits (a 9-bit grid point of 8
// values, 7 sign bits), then 8 bytes of 4-bit scales, one for 16 values.
// x = d * (scale + 1/2) / 4 * +-point.

import type { NumberFormat } from "../format.ts";
import { definePoints, HALF_AT_0 } from "../points.ts";

/** 2-bit vector codes from 512 points, with signs. */
export const iq2_xs: NumberFormat = definePoints({
  ...{ name: "IQ2_XS", ggmlType: 17, blockBytes: 74, grid: "iq2_xs", factor: 0.25 },
  index: [{ at: 8 * 2, bits: 9, step: 16, group: 64 }],
  signs: { at: 8 * 2 + 9, bits: 7, step: 16, group: 64 },
  scales: { kind: "n16", at: 8 * 66, bits: 4, step: 4, group: 8 },
  d: HALF_AT_0,
});
