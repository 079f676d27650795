// IQ3_S: 256 values in 110 bytes, 3.4375 bits a value. f16 d, 64 low bytes of grid points (4 values
// each), 8 bytes with their ninth bits, 32 bytes of signs, 4 bytes of 4-bit scales, one for 32 values.
// x = d * (2 * scale + 1) * +-point.

import type { NumberFormat } from "../format.ts";
import { definePoints, HALF_AT_0 } from "../points.ts";

/** 3-bit vector codes from 512 points, with signs. */
export const iq3_s: NumberFormat = definePoints({
  ...{ name: "IQ3_S", ggmlType: 21, blockBytes: 110, grid: "iq3_s", factor: 2 },
  index: [{ at: 8 * 2, bits: 8, step: 8, group: 64 }, { at: 8 * 66, bits: 1, step: 1, group: 8 }],
  signs: { at: 8 * 74, bits: 8, step: 8, group: 32 },
  scales: { kind: "n8", at: 8 * 106, bits: 4, step: 0, group: 4 },
  d: HALF_AT_0,
});
