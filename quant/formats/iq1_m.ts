// IQ1_M: 256 values in 56 bytes, 1.75 bits a value. 32 low bytes of grid points (8 values each), 16
// bytes of nibbles (a point's 3 high bits, then the sign of its shift by 1/8), four times 16 bits: four
// 3-bit scales for 16 values each, and on top a nibble of d, an f16, lowest first.
// x = d * (2 * scale + 1) * (point +- 1/8), with ternary points.

import type { NumberFormat } from "../format.ts";
import { f16ToF32 } from "../half.ts";
import { iq1Grid } from "../iq_grids.ts";

/** Ternary vector codes from 2048 points, shifted, scale for 16 values. */
export const iq1_m: NumberFormat = {
  name: "IQ1_M",
  ggmlType: 29,
  blockSize: 256,
  blockBytes: 56,
  decode(bytes, out) {
    const { coordinates } = iq1Grid();
    for (let b = 0, o = 0; o < out.length; b += 56, o += 256) {
      const d = f16ToF32(
        (bytes[b + 49]! >> 4) | (bytes[b + 51]! & 0xf0) | ((bytes[b + 53]! & 0xf0) << 4) |
          ((bytes[b + 55]! & 0xf0) << 8),
      );
      for (let p = 0; p < 32; p++) {
        const sub = p >> 1;
        const scales = bytes[b + 48 + (sub >> 2) * 2]! | (bytes[b + 49 + (sub >> 2) * 2]! << 8);
        const scale = d * (2 * ((scales >> (3 * (sub & 3))) & 7) + 1);
        const nibble = (bytes[b + 32 + (p >> 1)]! >> (4 * (p & 1))) & 15;
        const shift = nibble & 8 ? -0.125 : 0.125;
        const point = bytes[b + p]! | ((nibble & 7) << 8);
        for (let i = 0; i < 8; i++) {
          out[o + p * 8 + i] = scale * (coordinates[point * 8 + i]! + shift);
        }
      }
    }
  },
};
