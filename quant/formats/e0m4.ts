// E0M4 of Transformer-Lite (section 2.3): a group is scaled and shifted into [2^n, 2^(n+1)), where sign and
// exponent of a binary16 are constant, and only the four highest bits of the fraction are kept. So the
// code is decoded by two bit operations: `asHalf(CONSTANT | code << 6)`, then (w1 - bias) * inverse.
//   bytes: f16 inverse scale, f16 bias, then a nibble a value, the even one low: 4 + 32/g bits a value.
// The paper leaves open how the bias is snapped; only truncation to a multiple of a step reproduces its
// error ratio to INT4, and it makes zero exact. Codes round half up and saturate at 15.

import { defineBlockFormat } from "../block_format.ts";
import { checkFinite, parameterCode, storableScale } from "../finite.ts";
import type { NumberFormat } from "../format.ts";
import { maximum, minimum } from "../extremes.ts";
import { f32ToF16, readF16, writeU16 } from "../half.ts";

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
  return defineBlockFormat({
    ...{ name, blockSize: group, blockBytes },
    codes: [{ at: 4, bits: 4, run: 1 }],
    scales: { kind: `e${exponent}`, floats: [0, 2] },
    grid: { codes: 16 },
    // The bias is snapped to a step, so the ends may be a whole one off.
    bounds: { error: 2 * 1.5 / 16 + 0.002, shrink: 2 / 16 },
    ...(exponent === 2 || group === 256) && { variant: true },
    encode({ values, out, writeCodes }) {
      checkFinite(name, values);
      const codes = new Uint8Array(group);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += group) {
        const { inverse, bias } = place(values, o, group, exponent);
        writeU16(out, b, parameterCode(name, inverse, o));
        writeU16(out, b + 2, parameterCode(name, bias, o));
        const stored = { inverse: readF16(out, b), bias: readF16(out, b + 2) };
        encodeGroup(values, o, stored, exponent, codes);
        writeCodes(codes, out, b);
      }
    },
  });
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
