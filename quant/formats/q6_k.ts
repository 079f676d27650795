// Q6_K: 256 values in 210 bytes, 6.5625 bits a value. 128 bytes of low nibbles, 64 bytes of high bit
// pairs, 16 signed scales for 16 values each, f16 d. x = d * scale * (q - 32).
// A half of 128 values takes 64 low bytes (values 0..63 low nibble, 64..127 high) and 32 high bytes
// (byte l: values l, l + 32, l + 64, l + 96, low bits first).

import { defineBlockFormat } from "../block_format.ts";
import { roundHalfEven, signedExtreme } from "../extremes.ts";
import { fitSymmetric, ZERO_LIMIT } from "../fit.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";

const f = Math.fround;

/** 6-bit symmetric, 16 sub-blocks of 16 under one super-scale. */
export const q6_k: NumberFormat = defineBlockFormat({
  ...{ name: "Q6_K", ggmlType: 14, blockSize: 256, blockBytes: 210 },
  codes: [{ at: 0, bits: 4, run: 64 }, { at: 128, bits: 2, run: 32 }],
  offset: 32,
  scales: { kind: "k16", floats: [208], integers: 192 },
  grid: { codes: 64 },
  usesImportance: true,
  bounds: { error: 1 / 24, settles: true, relative: 1 / 64 },
  encode({ values, out, options, writeCodes }) {
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
});
