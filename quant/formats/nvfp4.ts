// NVFP4: 64 values in 36 bytes, 4.5 bits a value. Four unsigned E4M3 scales, one for 16 values, then 32
// bytes of E2M1 codes: 8 bytes a group, value j low, value j + 8 high. x = scale / 2 * doubled E2M1.
// Scale codes 0 and 127 (NaN in E4M3) both mean 0, as in ggml; the top bit is ignored.

import { E2M1_DOUBLED, nearestE2m1 } from "../e2m1.ts";
import { signedExtreme } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";

/** 4-bit float, an 8-bit float scale for 16 values. */
export const nvfp4: NumberFormat = {
  name: "NVFP4",
  ggmlType: 40,
  blockSize: 64,
  blockBytes: 36,
  decode(bytes, out) {
    for (let b = 0, o = 0; o < out.length; b += 36, o += 64) {
      for (let group = 0; group < 4; group++) {
        const d = halfScale(bytes[b + group]!);
        for (let j = 0; j < 8; j++) {
          const q = bytes[b + 4 + group * 8 + j]!;
          out[o + group * 16 + j] = d * E2M1_DOUBLED[q & 15]!;
          out[o + group * 16 + j + 8] = d * E2M1_DOUBLED[q >> 4]!;
        }
      }
    }
  },
  encode(values, out) {
    for (let b = 0, o = 0; o < values.length; b += 36, o += 64) {
      for (let group = 0; group < 4; group++) {
        const start = o + group * 16;
        const code = scaleCode(Math.fround(Math.abs(signedExtreme(values, start, 16)) / 6));
        const d = halfScale(code);
        out[b + group] = code;
        for (let j = 0; j < 8; j++) {
          const low = nearestE2m1(values[start + j]!, d);
          out[b + 4 + group * 8 + j] = low | (nearestE2m1(values[start + j + 8]!, d) << 4);
        }
      }
    }
  },
};

// Half the value of an E4M3 code (bias 7), because the E2M1 table is doubled.
function halfScale(code: number): number {
  if (code === 0 || code === 127) return 0;
  const exponent = (code >> 3) & 15;
  const mantissa = code & 7;
  return exponent === 0 ? mantissa * 2 ** -10 : (1 + mantissa / 8) * 2 ** (exponent - 8);
}

// Nearest E4M3 code of a number >= 0, halves up, at most 448 (code 126). ggml sends everything from 256 on
// to 448; here those scales are rounded like the others.
function scaleCode(value: number): number {
  if (!(value > 0)) return 0;
  const exponent = Math.floor(Math.log2(value));
  if (exponent < -6) return Math.min(7, Math.floor(value * 512 + 0.5));
  const eighths = Math.floor(value / 2 ** exponent * 8 + 0.5); // 8..16
  return Math.min(126, (exponent + 7) * 8 + eighths - 8);
}
