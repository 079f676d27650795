// Q5_K: 256 values in 176 bytes, 5.5 bits a value. f16 d, f16 dmin, 12 bytes of 6-bit scales and minima
// (k_scales.ts), 32 bytes of fifth bits (bit s of byte l is value 32 s + l's), 128 bytes of nibbles as
// in Q4_K. x = d * scale * q - dmin * min.

import type { NumberFormat } from "../format.ts";
import { readF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";
import { createSuperBlockFitter } from "../k_affine.ts";
import { minimumCode, scaleCode } from "../k_scales.ts";

/** 5-bit affine, 8 sub-blocks of 32 under one super-scale. */
export const q5_k: NumberFormat = {
  name: "Q5_K",
  ggmlType: 13,
  blockSize: 256,
  blockBytes: 176,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 176, o += 256) {
      const d = readF16(bytes, b);
      const dmin = readF16(bytes, b + 2);
      for (let sub = 0; sub < 8; sub++) {
        const scale = d * scaleCode(bytes, b + 4, sub);
        const min = dmin * minimumCode(bytes, b + 4, sub);
        const codes = b + 48 + (sub >> 1) * 32;
        const shift = (sub & 1) * 4;
        for (let l = 0; l < 32; l++) {
          const high = (bytes[b + 16 + l]! >> sub) & 1;
          const q = ((bytes[codes + l]! >> shift) & 15) | (high << 4);
          out[o + sub * 32 + l] = scale * q - min;
        }
      }
    }
  },
  grid: { codes: 32, write: writeCodes },
  usesImportance: true,
  encode(values, out, options = {}) {
    const weights = importanceWeights(values, options, 256);
    const fit = createSuperBlockFitter({ maxCode: 31, from: -0.5, trials: 15, absolute: false });
    for (let b = 0, o = 0; o < values.length; b += 176, o += 256) {
      writeCodes(fit(values, o, out, b, weights), out, b);
    }
  },
};

function writeCodes(codes: Uint8Array, out: Uint8Array, at: number): void {
  for (let i = 0; i < 128; i++) {
    const low = (i >> 5) * 64 + (i & 31);
    out[at + 48 + i] = (codes[low]! & 15) | ((codes[low + 32]! & 15) << 4);
  }
  out.fill(0, at + 16, at + 48);
  for (let i = 0; i < 256; i++) out[at + 16 + (i & 31)]! |= (codes[i]! >> 4) << (i >> 5);
}
