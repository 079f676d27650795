// IQ2_XS: 256 values in 74 bytes, 2.3125 bits a value. f16 d, 32 times 16 bits (a 9-bit grid point of 8
// values, 7 sign bits), then 8 bytes of 4-bit scales, one for 16 values.
// x = d * (scale + 1/2) / 4 * +-point.

import type { NumberFormat } from "../format.ts";
import { readF16 } from "../half.ts";
import { iq2XsGrid } from "../iq_grids.ts";
import { completeSigns, writePoint } from "../iq_points.ts";

/** 2-bit vector codes from 512 points, with signs. */
export const iq2_xs: NumberFormat = {
  name: "IQ2_XS",
  ggmlType: 17,
  blockSize: 256,
  blockBytes: 74,
  decode(bytes, out) {
    const grid = iq2XsGrid();
    for (let b = 0, o = 0; o < out.length; b += 74, o += 256) {
      const d = readF16(bytes, b);
      for (let p = 0; p < 32; p++) {
        const code = bytes[b + 2 + p * 2]! | (bytes[b + 3 + p * 2]! << 8);
        const nibble = (bytes[b + 66 + (p >> 2)]! >> (2 * (p & 2))) & 15;
        const scale = d * (nibble + 0.5) * 0.25;
        writePoint(out, o + p * 8, grid, code & 511, scale, completeSigns(code >> 9));
      }
    }
  },
};
