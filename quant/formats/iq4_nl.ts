// IQ4_NL: 32 values in 18 bytes, 4.5 bits a value. f16 scale d, then 16 bytes: value j low nibble, value
// j + 16 high. A code picks one of 16 unevenly spaced levels (iq4_fit.ts). x = d * level.
// The encoder puts the value furthest from zero on level -127, and then fits d to the chosen levels.

import { signedExtreme } from "../extremes.ts";
import { ZERO_LIMIT } from "../fit.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";
import { fitIq4, IQ4_LEVELS, nearestLevel } from "../iq4_fit.ts";
import { writeHalves } from "../nibbles.ts";

/** 4-bit on a non-linear scale, one scale for 32 values. */
export const iq4_nl: NumberFormat = {
  name: "IQ4_NL",
  ggmlType: 20,
  blockSize: 32,
  blockBytes: 18,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 18, o += 32) {
      const d = readF16(bytes, b);
      for (let j = 0; j < 16; j++) {
        const q = bytes[b + 2 + j]!;
        out[o + j] = d * IQ4_LEVELS[q & 15]!;
        out[o + j + 16] = d * IQ4_LEVELS[q >> 4]!;
      }
    }
  },
  grid: {
    codes: 16,
    places: IQ4_LEVELS,
    write: (codes, out, at) => writeHalves(codes, out, at + 2),
  },
  usesImportance: true,
  encode(values, out, options = {}) {
    const weights = importanceWeights(values, options);
    for (let b = 0, o = 0; o < values.length; b += 18, o += 32) {
      const extreme = signedExtreme(values, o, 32);
      const isZero = Math.abs(extreme) < ZERO_LIMIT;
      const trials = weights ? 7 : 0;
      const scale = fitIq4(values, o, { first: IQ4_LEVELS[0]!, trials, weights });
      writeF16(out, b, scale);
      // Without weights codes belong to the scale of the extreme, as in ggml, not to the fitted one.
      const unit = weights ? scale : Math.fround(extreme / IQ4_LEVELS[0]!);
      const inverse = isZero || unit === 0 ? 0 : Math.fround(1 / unit);
      const code = (i: number) => isZero ? 0 : nearestLevel(Math.fround(inverse * values[i]!));
      for (let j = 0; j < 16; j++) out[b + 2 + j] = code(o + j) | (code(o + j + 16) << 4);
    }
  },
};
