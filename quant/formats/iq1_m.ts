// IQ1_M: 256 values in 56 bytes, 1.75 bits a value. 32 low bytes of grid points (8 values each), 16
// bytes of nibbles (a point's 3 high bits, then the sign of its shift by 1/8), four times 16 bits: four
// 3-bit scales for 16 values each, and on top a nibble of d, an f16, lowest first.
// x = d * (2 * scale + 1) * (point +- 1/8), with ternary points.

import type { NumberFormat } from "../format.ts";
import { definePoints } from "../points.ts";

/** Ternary vector codes from 2048 points, shifted, scale for 16 values. */
export const iq1_m: NumberFormat = definePoints({
  ...{ name: "IQ1_M", ggmlType: 29, blockBytes: 56, grid: "iq1", factor: 2 },
  index: [{ at: 0, bits: 8, step: 8, group: 32 }, { at: 8 * 32, bits: 3, step: 4, group: 16 }],
  shifts: { at: 8 * 32 + 3, bits: 1, step: 4, group: 16 },
  scales: { kind: "n16", at: 8 * 48, bits: 3, step: 3, group: 6, pair: 16 },
  d: [0, 1, 2, 3].map((i) => ({ at: 8 * 48 + 16 * i + 12, bits: 4, step: 0, group: 0 })),
});
