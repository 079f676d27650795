// IQ2_XXS: 256 values in 66 bytes, 2.0625 bits a value. f16 d, then 8 bytes for each 32 values: four
// grid points (a byte each, 8 values a point), four times 7 sign bits, and a 4-bit scale on top.
// x = d * (scale + 1/2) / 4 * +-point.

import type { NumberFormat } from "../format.ts";
import { readF16 } from "../half.ts";
import { iq2XxsGrid } from "../iq_grids.ts";
import { completeSigns, writePoint } from "../iq_points.ts";

/** 2-bit vector codes from 256 points, with signs. */
export const iq2_xxs: NumberFormat = {
  name: "IQ2_XXS",
  ggmlType: 16,
  blockSize: 256,
  blockBytes: 66,
  decode(bytes, out) {
    const grid = iq2XxsGrid();
    for (let b = 0, o = 0; o < out.length; b += 66, o += 256) {
      const d = readF16(bytes, b);
      for (let sub = 0; sub < 8; sub++) {
        const at = b + 2 + sub * 8;
        const packed = bytes[at + 4]! | (bytes[at + 5]! << 8) | (bytes[at + 6]! << 16) |
          (bytes[at + 7]! << 24);
        const scale = d * ((packed >>> 28) + 0.5) * 0.25;
        for (let p = 0; p < 4; p++) {
          const signs = completeSigns((packed >>> (7 * p)) & 127);
          writePoint(out, o + sub * 32 + p * 8, grid, bytes[at + p]!, scale, signs);
        }
      }
    }
  },
};
