// IQ4_XS: 256 values in 136 bytes, 4.25 bits a value. f16 d, 16 bits with the high pairs of eight 6-bit
// scales, 4 bytes with their low nibbles, then 128 bytes: 16 for each 32 values, value j low nibble,
// value j + 16 high. x = d * (scale - 32) * level, with the levels of IQ4_NL.

import { defineBlockFormat } from "../block_format.ts";
import { inverseScale, roundHalfEven, signedExtreme } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { writeF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";
import { fitIq4, IQ4_LEVELS, nearestLevel } from "../iq4_fit.ts";

const f = Math.fround;

/** 4-bit on a non-linear scale, 8 sub-blocks of 32 under one super-scale. */
export const iq4_xs: NumberFormat = defineBlockFormat({
  ...{ name: "IQ4_XS", ggmlType: 23, blockSize: 256, blockBytes: 136 },
  codes: [{ at: 8, bits: 4, run: 16 }],
  levels: IQ4_LEVELS,
  scales: {
    kind: "k8",
    floats: [0],
    integers: { fields: [{ at: 4, bits: 4, run: 1 }, { at: 2, bits: 2, run: 1 }], offset: 32 },
  },
  grid: { codes: 16 },
  usesImportance: true,
  bounds: { error: 1 / 6, settles: true, relative: 1 / 64 },
  encode({ values, out, options, writeCodes }) {
    const weights = importanceWeights(values, options);
    const scales = new Float32Array(8), codes = new Uint8Array(256);
    for (let b = 0, o = 0; o < values.length; b += 136, o += 256) {
      for (let sub = 0; sub < 8; sub++) {
        scales[sub] = fitIq4(values, o + sub * 32, {
          ...{ first: -IQ4_LEVELS[0]!, trials: 7, weights },
        });
      }
      out.fill(0, b, b + 8);
      const d = f(-signedExtreme(scales, 0, 8) / 32);
      writeF16(out, b, d);
      for (let sub = 0; sub < 8; sub++) {
        const scale = Math.max(-32, Math.min(31, roundHalfEven(f(inverseScale(d) * scales[sub]!))));
        out[b + 4 + (sub >> 1)]! |= ((scale + 32) & 15) << (4 * (sub & 1));
        out[b + 2 + (sub >> 2)]! |= ((scale + 32) >> 4) << (2 * (sub & 3));
        // As in ggml the codes belong to d before it was rounded to f16.
        const inverse = inverseScale(f(d * scale));
        for (let j = sub * 32; j < sub * 32 + 32; j++) {
          codes[j] = nearestLevel(f(inverse * values[o + j]!));
        }
      }
      writeCodes(codes, out, b);
    }
  },
});
