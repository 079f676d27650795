// IQ1_S: 256 values in 50 bytes, 1.5625 bits a value. f16 d, 32 low bytes of grid points (8 values
// each), then 16 bits for each 32 values: the points' 3 high bits, a 3-bit scale, and on top the sign of
// a shift by 1/8. x = d * (2 * scale + 1) * (point +- 1/8), with ternary points.

import type { NumberFormat } from "../format.ts";
import { readF16 } from "../half.ts";
import { iq1Grid } from "../iq_grids.ts";

/** Ternary vector codes from 2048 points, shifted, scale for 32 values. */
export const iq1_s: NumberFormat = {
  name: "IQ1_S",
  ggmlType: 19,
  blockSize: 256,
  blockBytes: 50,
  decode(bytes, out) {
    const { coordinates } = iq1Grid();
    for (let b = 0, o = 0; o < out.length; b += 50, o += 256) {
      const d = readF16(bytes, b);
      for (let sub = 0; sub < 8; sub++) {
        const high = bytes[b + 34 + sub * 2]! | (bytes[b + 35 + sub * 2]! << 8);
        const scale = d * (2 * ((high >> 12) & 7) + 1);
        const shift = high & 0x8000 ? -0.125 : 0.125;
        for (let p = 0; p < 4; p++) {
          const point = bytes[b + 2 + sub * 4 + p]! | (((high >> (3 * p)) & 7) << 8);
          for (let i = 0; i < 8; i++) {
            out[o + sub * 32 + p * 8 + i] = scale * (coordinates[point * 8 + i]! + shift);
          }
        }
      }
    }
  },
};
