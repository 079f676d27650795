// INT4, asymmetric: the baseline that Transformer-Lite measures E0M4 against, as GPTQ and AWQ use it.
// x = scale * (q - zero), with an integer zero point, so that zero is exact where it lies in the range.
//   bytes: f16 scale, i16 zero point, then a nibble a value, the even one low: 4 + 32/g bits a value.
// A group whose values lie further from zero than 2^15 steps counts as constant.

import { defineBlockFormat } from "../block_format.ts";
import { checkFinite, parameterCode, storableScale } from "../finite.ts";
import type { NumberFormat } from "../format.ts";
import { maximum, minimum, roundHalfAway } from "../extremes.ts";
import { f16ToF32, writeU16 } from "../half.ts";

/** INT4 with `group` values under one scale and zero point. */
export function defineInt4(group: number): NumberFormat {
  const name = `INT4_G${group}`;
  const blockBytes = 4 + group / 2;
  return defineBlockFormat({
    ...{ name, blockSize: group, blockBytes },
    codes: [{ at: 4, bits: 4, run: 1 }],
    scales: { kind: "dz", floats: [0, 2] },
    grid: { codes: 16 },
    // A whole step at the ends: the zero point is rounded.
    bounds: { error: 2 / 15 + 0.002 },
    ...group === 256 && { variant: true },
    encode({ values, out, writeCodes }) {
      checkFinite(name, values);
      const codes = new Uint8Array(group);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += group) {
        const min = minimum(values, o, group);
        const range = maximum(values, o, group) - min;
        const isFlat = range * 2 ** 11 <= Math.abs(min);
        const code = parameterCode(name, storableScale(isFlat ? Math.abs(min) : range / 15), o);
        const scale = f16ToF32(code);
        const inverse = scale === 0 ? 0 : 1 / scale;
        const zero = Math.max(-32768, Math.min(32767, roundHalfAway(-min * inverse)));
        writeU16(out, b, code);
        writeU16(out, b + 2, zero);
        for (let j = 0; j < group; j++) {
          const q = roundHalfAway(values[o + j]! * inverse) + zero;
          codes[j] = Math.max(0, Math.min(15, q));
        }
        writeCodes(codes, out, b);
      }
    },
  });
}
