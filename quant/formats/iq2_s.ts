// IQ2_S: 256 values in 82 bytes, 2.5625 bits a value. f16 d, 32 low bytes of grid points (8 values
// each), 32 bytes of signs, 8 bytes with the points' 2 high bits, 8 bytes of 4-bit scales, one for 16
// values. x = d * (scale + 1/2) / 4 * +-point.

import type { NumberFormat } from "../format.ts";
import { readF16 } from "../half.ts";
import { iq2SGrid } from "../iq_grids.ts";
import { writePoint } from "../iq_points.ts";

/** 2-bit vector codes from 1024 points, with signs. */
export const iq2_s: NumberFormat = {
  name: "IQ2_S",
  ggmlType: 22,
  blockSize: 256,
  blockBytes: 82,
  decode(bytes, out) {
    const grid = iq2SGrid();
    for (let b = 0, o = 0; o < out.length; b += 82, o += 256) {
      const d = readF16(bytes, b);
      for (let p = 0; p < 32; p++) {
        const high = (bytes[b + 66 + (p >> 2)]! >> (2 * (p & 3))) & 3;
        const nibble = (bytes[b + 74 + (p >> 2)]! >> (2 * (p & 2))) & 15;
        const scale = d * (nibble + 0.5) * 0.25;
        const point = bytes[b + 2 + p]! | (high << 8);
        writePoint(out, o + p * 8, grid, point, scale, bytes[b + 34 + p]!);
      }
    }
  },
};
