// Q6_K: 256 values in 210 bytes, 6.5625 bits a value. 128 bytes of low nibbles, 64 bytes of high bit
// pairs, 16 signed scales for 16 values each, f16 d. x = d * scale * (q - 32).
// A half of 128 values takes 64 low bytes (values 0..63 low nibble, 64..127 high) and 32 high bytes
// (byte l: values l, l + 32, l + 64, l + 96, low bits first).

import { roundHalfEven, signedExtreme } from "../extremes.ts";
import { fitSymmetric, ZERO_LIMIT } from "../fit.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";

const f = Math.fround;

/** 6-bit symmetric, 16 sub-blocks of 16 under one super-scale. */
export const q6_k: NumberFormat = {
  name: "Q6_K",
  ggmlType: 14,
  blockSize: 256,
  blockBytes: 210,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 210, o += 256) {
      const d = readF16(bytes, b + 208);
      for (let sub = 0; sub < 16; sub++) {
        const scale = d * ((bytes[b + 192 + sub]! << 24) >> 24);
        const half = sub >> 3;
        const low = b + half * 64 + (sub & 3) * 16;
        const lowShift = sub & 4;
        const high = b + 128 + half * 32 + (sub & 1) * 16;
        const highShift = sub & 6;
        for (let l = 0; l < 16; l++) {
          const q = ((bytes[low + l]! >> lowShift) & 15) |
            (((bytes[high + l]! >> highShift) & 3) << 4);
          out[o + sub * 16 + l] = scale * (q - 32);
        }
      }
    }
  },
  grid: { codes: 64, write: writeCodes },
  usesImportance: true,
  encode(values, out, options = {}) {
    const weights = importanceWeights(values, options, 256);
    const block = new Float32Array(256);
    const codes = new Uint8Array(256);
    const scales = new Float32Array(16);
    for (let b = 0, o = 0; o < values.length; b += 210, o += 256) {
      block.set(values.subarray(o, o + 256));
      for (let sub = 0; sub < 16; sub++) {
        scales[sub] = fitSymmetric(block, sub * 16, 16, 32, codes, weights?.subarray(o, o + 256));
      }
      out.fill(0, b, b + 210);
      const extreme = signedExtreme(scales, 0, 16);
      if (Math.abs(extreme) < ZERO_LIMIT) continue;
      const inverse = f(-128 / extreme);
      writeF16(out, b + 208, f(1 / inverse));
      for (let sub = 0; sub < 16; sub++) {
        const scale = Math.min(127, roundHalfEven(f(inverse * scales[sub]!)));
        out[b + 192 + sub] = scale;
        const d = f(readF16(out, b + 208) * scale);
        if (d === 0) continue;
        for (let i = sub * 16; i < sub * 16 + 16; i++) {
          codes[i] = 32 + Math.max(-32, Math.min(31, roundHalfEven(f(block[i]! / d))));
        }
      }
      writeCodes(codes, out, b);
    }
  },
};

function writeCodes(codes: Uint8Array, out: Uint8Array, at: number): void {
  out.fill(0, at, at + 192);
  for (let i = 0; i < 256; i++) {
    const half = i >> 7;
    out[at + half * 64 + (i & 63)]! |= (codes[i]! & 15) << (4 * ((i >> 6) & 1));
    out[at + 128 + half * 32 + (i & 31)]! |= (codes[i]! >> 4) << (2 * ((i >> 5) & 3));
  }
}
