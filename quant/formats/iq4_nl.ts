// IQ4_NL: 32 values in 18 bytes, 4.5 bits a value. f16 scale d, then 16 bytes: value j low nibble, value
// j + 16 high. A code picks one of 16 unevenly spaced levels (iq4_fit.ts). x = d * level.
// The encoder puts the value furthest from zero on level -127, and then fits d to the chosen levels.

import { defineBlockFormat } from "../block_format.ts";
import { signedExtreme } from "../extremes.ts";
import { ZERO_LIMIT } from "../fit.ts";
import type { NumberFormat } from "../format.ts";
import { writeF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";
import { fitIq4, IQ4_LEVELS, nearestLevel } from "../iq4_fit.ts";

/** 4-bit on a non-linear scale, one scale for 32 values. */
export const iq4_nl: NumberFormat = defineBlockFormat({
  ...{ name: "IQ4_NL", ggmlType: 20, blockSize: 32, blockBytes: 18 },
  codes: [{ at: 2, bits: 4, run: 16 }],
  levels: IQ4_LEVELS,
  scales: { kind: "d", floats: [0] },
  grid: { codes: 16 },
  usesImportance: true,
  bounds: { error: 1 / 6 },
  encode({ values, out, options, writeCodes }) {
    const weights = importanceWeights(values, options);
    const codes = new Uint8Array(32);
    for (let b = 0, o = 0; o < values.length; b += 18, o += 32) {
      const extreme = signedExtreme(values, o, 32);
      const isZero = Math.abs(extreme) < ZERO_LIMIT;
      const trials = weights ? 7 : 0;
      const scale = fitIq4(values, o, { first: IQ4_LEVELS[0]!, trials, weights });
      writeF16(out, b, scale);
      // Without weights codes belong to the scale of the extreme, as in ggml, not to the fitted one.
      const unit = weights ? scale : Math.fround(extreme / IQ4_LEVELS[0]!);
      const inverse = isZero || unit === 0 ? 0 : Math.fround(1 / unit);
      for (let j = 0; j < 32; j++) {
        codes[j] = isZero ? 0 : nearestLevel(Math.fround(inverse * values[o + j]!));
      }
      writeCodes(codes, out, b);
    }
  },
});
