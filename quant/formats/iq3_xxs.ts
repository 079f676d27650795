// IQ3_XXS: 256 values in 98 bytes, 3.0625 bits a value. f16 d, 64 grid points (a byte each, 4 values a
// point), then 4 bytes for each 32 values: four times 7 sign bits for 8 values, a 4-bit scale on top.
// x = d * (scale + 1/2) / 2 * +-point.

import type { NumberFormat } from "../format.ts";
import { readF16 } from "../half.ts";
import { iq3XxsGrid } from "../iq_grids.ts";
import { completeSigns, writePoint } from "../iq_points.ts";

/** 3-bit vector codes from 256 points, with signs. */
export const iq3_xxs: NumberFormat = {
  name: "IQ3_XXS",
  ggmlType: 18,
  blockSize: 256,
  blockBytes: 98,
  decode(bytes, out) {
    const grid = iq3XxsGrid();
    for (let b = 0, o = 0; o < out.length; b += 98, o += 256) {
      const d = readF16(bytes, b);
      for (let sub = 0; sub < 8; sub++) {
        const at = b + 66 + sub * 4;
        const packed = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) |
          (bytes[at + 3]! << 24);
        const scale = d * ((packed >>> 28) + 0.5) * 0.5;
        for (let p = 0; p < 8; p++) {
          const signs = completeSigns((packed >>> (7 * (p >> 1))) & 127) >> (4 * (p & 1));
          const point = bytes[b + 2 + sub * 8 + p]!;
          writePoint(out, o + sub * 32 + p * 4, grid, point, scale, signs);
        }
      }
    }
  },
};
