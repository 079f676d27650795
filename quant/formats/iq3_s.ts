// IQ3_S: 256 values in 110 bytes, 3.4375 bits a value. f16 d, 64 low bytes of grid points (4 values
// each), 8 bytes with their ninth bits, 32 bytes of signs, 4 bytes of 4-bit scales, one for 32 values.
// x = d * (2 * scale + 1) * +-point.

import type { NumberFormat } from "../format.ts";
import { readF16 } from "../half.ts";
import { iq3SGrid } from "../iq_grids.ts";
import { writePoint } from "../iq_points.ts";

/** 3-bit vector codes from 512 points, with signs. */
export const iq3_s: NumberFormat = {
  name: "IQ3_S",
  ggmlType: 21,
  blockSize: 256,
  blockBytes: 110,
  decode(bytes, out) {
    const grid = iq3SGrid();
    for (let b = 0, o = 0; o < out.length; b += 110, o += 256) {
      const d = readF16(bytes, b);
      for (let p = 0; p < 64; p++) {
        const high = (bytes[b + 66 + (p >> 3)]! >> (p & 7)) & 1;
        const nibble = (bytes[b + 106 + (p >> 4)]! >> (4 * ((p >> 3) & 1))) & 15;
        const signs = bytes[b + 74 + (p >> 1)]! >> (4 * (p & 1));
        const point = bytes[b + 2 + p]! | (high << 8);
        writePoint(out, o + p * 4, grid, point, d * (2 * nibble + 1), signs);
      }
    }
  },
};
