// INT4, asymmetric: the baseline that Transformer-Lite measures E0M4 against, as GPTQ and AWQ use it.
// x = scale * (q - zero), with an integer zero point, so that zero is exact where it lies in the range.
//   bytes: f16 scale, i16 zero point, then a nibble a value, the even one low: 4 + 32/g bits a value.
// A group whose values lie further from zero than 2^15 steps counts as constant.

import { checkFinite, parameterCode, storableScale } from "../finite.ts";
import type { NumberFormat } from "../format.ts";
import { maximum, minimum, roundHalfAway } from "../extremes.ts";
import { f16ToF32, readF16 } from "../half.ts";
import { readNibbles, writeNibbles } from "../nibbles.ts";

/** INT4 with `group` values under one scale and zero point. */
export function defineInt4(group: number): NumberFormat {
  const name = `INT4_G${group}`;
  const blockBytes = 4 + group / 2;
  const codes = new Uint8Array(group);
  return {
    name,
    blockSize: group,
    blockBytes,
    decode(bytes, out) {
      for (let b = 0, o = 0; o < out.length; b += blockBytes, o += group) {
        const scale = readF16(bytes, b);
        const zero = ((bytes[b + 2]! | (bytes[b + 3]! << 8)) << 16) >> 16;
        readNibbles(bytes, b + 4, codes);
        for (let j = 0; j < group; j++) out[o + j] = scale * (codes[j]! - zero);
      }
    },
    grid: { codes: 16, write: (codes, out, at) => writeNibbles(out, at + 4, codes) },
    encode(values, out) {
      checkFinite(name, values);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += group) {
        const min = minimum(values, o, group);
        const range = maximum(values, o, group) - min;
        const isFlat = range * 2 ** 11 <= Math.abs(min);
        const code = parameterCode(name, storableScale(isFlat ? Math.abs(min) : range / 15), o);
        const scale = f16ToF32(code);
        const inverse = scale === 0 ? 0 : 1 / scale;
        const zero = Math.max(-32768, Math.min(32767, roundHalfAway(-min * inverse)));
        out[b] = code & 0xff;
        out[b + 1] = code >> 8;
        out[b + 2] = zero & 0xff;
        out[b + 3] = (zero >> 8) & 0xff;
        for (let j = 0; j < group; j++) {
          const q = roundHalfAway(values[o + j]! * inverse) + zero;
          codes[j] = Math.max(0, Math.min(15, q));
        }
        writeNibbles(out, b + 4, codes);
      }
    },
  };
}
