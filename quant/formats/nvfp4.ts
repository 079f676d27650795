// NVFP4: 64 values in 36 bytes, 4.5 bits a value. Four unsigned E4M3 scales, one for 16 values, then 32
// bytes of E2M1 codes: 8 bytes a group, value j low, value j + 8 high. x = scale / 2 * doubled E2M1.
// Scale codes 0 and 127 (NaN in E4M3) both mean 0, as in ggml; the top bit is ignored.

import { defineBlockFormat } from "../block_format.ts";
import { E2M1_DOUBLED, nearestE2m1 } from "../e2m1.ts";
import { signedExtreme } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { halfOfE4m3 } from "../scale_kinds.ts";

/** 4-bit float, an 8-bit float scale for 16 values. */
export const nvfp4: NumberFormat = defineBlockFormat({
  ...{ name: "NVFP4", ggmlType: 40, blockSize: 64, blockBytes: 36 },
  codes: [{ at: 4, bits: 4, run: 8 }],
  levels: E2M1_DOUBLED,
  scales: { kind: "e4m3", integers: 0 },
  // The step is that of E4M3 times the largest code.
  bounds: { error: 1 / 6 + 1 / 12, relative: 1 / 16, step: 2 ** -9 * 6 },
  encode({ values, out, writeCodes }) {
    const codes = new Uint8Array(64);
    for (let b = 0, o = 0; o < values.length; b += 36, o += 64) {
      for (let group = 0; group < 4; group++) {
        const first = group * 16;
        const code = scaleCode(Math.fround(Math.abs(signedExtreme(values, o + first, 16)) / 6));
        const d = halfOfE4m3(code);
        out[b + group] = code;
        for (let j = first; j < first + 16; j++) codes[j] = nearestE2m1(values[o + j]!, d);
      }
      writeCodes(codes, out, b);
    }
  },
});

// Nearest E4M3 code of a number >= 0, halves up, at most 448 (code 126). ggml sends everything from 256 on
// to 448; here those scales are rounded like the others.
function scaleCode(value: number): number {
  if (!(value > 0)) return 0;
  const exponent = Math.floor(Math.log2(value));
  if (exponent < -6) return Math.min(7, Math.floor(value * 512 + 0.5));
  const eighths = Math.floor(value / 2 ** exponent * 8 + 0.5); // 8..16
  return Math.min(126, (exponent + 7) * 8 + eighths - 8);
}
