// Q4_K: 256 values in 144 bytes, 4.5 bits a value. f16 d, f16 dmin, 12 bytes of 6-bit scales and minima
// (k_scales.ts), 128 bytes of nibbles: each 32 bytes hold 32 values low and the next 32 high.
// x = d * scale * q - dmin * min.

import type { NumberFormat } from "../format.ts";
import { readF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";
import { createSuperBlockFitter } from "../k_affine.ts";
import { minimumCode, scaleCode } from "../k_scales.ts";

/** 4-bit affine, 8 sub-blocks of 32 under one super-scale. */
export const q4_k: NumberFormat = {
  name: "Q4_K",
  ggmlType: 12,
  blockSize: 256,
  blockBytes: 144,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 144, o += 256) {
      const d = readF16(bytes, b);
      const dmin = readF16(bytes, b + 2);
      for (let sub = 0; sub < 8; sub++) {
        const scale = d * scaleCode(bytes, b + 4, sub);
        const min = dmin * minimumCode(bytes, b + 4, sub);
        const codes = b + 16 + (sub >> 1) * 32;
        const shift = (sub & 1) * 4;
        for (let l = 0; l < 32; l++) {
          out[o + sub * 32 + l] = scale * ((bytes[codes + l]! >> shift) & 15) - min;
        }
      }
    }
  },
  grid: { codes: 16, write: writeCodes },
  usesImportance: true,
  encode(values, out, options = {}) {
    const weights = importanceWeights(values, options, 256);
    const fit = createSuperBlockFitter({ maxCode: 15, from: -1, trials: 20, absolute: false });
    for (let b = 0, o = 0; o < values.length; b += 144, o += 256) {
      writeCodes(fit(values, o, out, b, weights), out, b);
    }
  },
};

function writeCodes(codes: Uint8Array, out: Uint8Array, at: number): void {
  for (let i = 0; i < 128; i++) {
    const low = (i >> 5) * 64 + (i & 31);
    out[at + 16 + i] = codes[low]! | (codes[low + 32]! << 4);
  }
}
