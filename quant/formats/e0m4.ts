// E0M4 of Transformer-Lite (section 2.3): a group is scaled and shifted into [2^n, 2^(n+1)), where sign and
// exponent of a binary16 are constant, and only the four highest bits of the fraction are kept. So the
// code is decoded by two bit operations: `asHalf(CONSTANT | code << 6)`, then (w1 - bias) * inverse.
//   bytes: f16 inverse scale, f16 bias, then a nibble a value, the even one low: 4 + 32/g bits a value.
// The paper leaves open how the bias is snapped; only truncation to a multiple of a step reproduces its
// error ratio to INT4, and it makes zero exact. Codes round half up and saturate at 15.

import { checkFinite, parameterCode, storableScale } from "../finite.ts";
import type { NumberFormat } from "../format.ts";
import { maximum, minimum } from "../extremes.ts";
import { f16ToF32, f32ToF16, readF16 } from "../half.ts";
import { readNibbles, writeNibbles } from "../nibbles.ts";

/** Where the scale and the bias of a group map its values. */
interface Placement {
  readonly inverse: number;
  readonly bias: number;
}

/**
 * E0M4 with `group` values under one scale and bias.
 *
 * @param exponent The n of the paper, 1 or 2: values are mapped into [2^n, 2^(n+1)).
 */
export function defineE0m4(group: number, exponent: 1 | 2): NumberFormat {
  const name = `E0M4_G${group}${exponent === 1 ? "" : `_N${exponent}`}`;
  const blockBytes = 4 + group / 2;
  const constant = (exponent + 15) << 10;
  const codes = new Uint8Array(group);
  return {
    name,
    blockSize: group,
    blockBytes,
    decode(bytes, out) {
      const levels = Float32Array.from({ length: 16 }, (_, y) => f16ToF32(constant | (y << 6)));
      for (let b = 0, o = 0; o < out.length; b += blockBytes, o += group) {
        const inverse = readF16(bytes, b);
        const bias = readF16(bytes, b + 2);
        readNibbles(bytes, b + 4, codes);
        for (let j = 0; j < group; j++) out[o + j] = (levels[codes[j]!]! - bias) * inverse;
      }
    },
    grid: { codes: 16, write: (codes, out, at) => writeNibbles(out, at + 4, codes) },
    encode(values, out) {
      checkFinite(name, values);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += group) {
        const { inverse, bias } = place(values, o, group, exponent);
        writeParameters(name, out, b, inverse, bias, o);
        encodeGroup(
          values,
          o,
          { inverse: readF16(out, b), bias: readF16(out, b + 2) },
          exponent,
          codes,
        );
        writeNibbles(out, b + 4, codes);
      }
    },
  };
}

function writeParameters(
  name: string,
  out: Uint8Array,
  at: number,
  first: number,
  second: number,
  start: number,
): void {
  for (const [i, value] of [first, second].entries()) {
    const code = parameterCode(name, value, start);
    out[at + 2 * i] = code & 0xff;
    out[at + 2 * i + 1] = code >> 8;
  }
}

function place(values: Float32Array, start: number, count: number, exponent: number): Placement {
  const base = 2 ** exponent;
  const step = base / 16;
  const min = minimum(values, start, count);
  const range = maximum(values, start, count) - min;
  // All but constant: one step above the bias is the value, exactly but for the rounding of the scale.
  const isFlat = range <= Math.abs(min) * base / 32768;
  if (isFlat) return { inverse: min / step, bias: base };
  const width = base - 2 ** (exponent - 10);
  const inverse = storableScale(range / width);
  return { inverse, bias: Math.floor((base - min / inverse) / step) * step };
}

function encodeGroup(
  values: Float32Array,
  start: number,
  { inverse, bias }: Placement,
  exponent: number,
  codes: Uint8Array,
): void {
  const base = 2 ** exponent;
  const last = 2 * base - 2 ** (exponent - 10);
  for (let j = 0; j < codes.length; j++) {
    // A scale of zero: values too small for it, all of them at the level of zero.
    const w1 = inverse === 0 ? bias : values[start + j]! / inverse + bias;
    const fraction = f32ToF16(Math.max(base, Math.min(last, w1))) & 0x3ff;
    codes[j] = Math.min(15, (fraction >> 6) + ((fraction >> 5) & 1));
  }
}
