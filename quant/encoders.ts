// Encoders that several formats share, after ggml's reference: every operation is rounded to float32 in its order, so
// that encoded blocks are the same bytes.

import type { BlockFormat } from "./block_format.ts";
import { inverseScale, maximum, minimum, roundHalfAway, signedExtreme } from "./extremes.ts";
import { fitSymmetric } from "./fit.ts";
import { writeF16 } from "./half.ts";
import { createAffineFitter, importanceWeights } from "./importance.ts";

const f = Math.fround;
type Encoder = NonNullable<BlockFormat["encode"]>;

/** The code `x` is nearest to, halves up, among those up to `top`. */
function nearestCode(x: number, top: number): number {
  return Math.max(0, Math.min(top, Math.trunc(x)));
}

/**
 * Blocks of 32 of `bytes`, x = d (q - half), f16 d in front. The scale maps the value furthest from zero to code 0, so
 * that it is met exactly.
 */
export function symmetricEncoder(bytes: number, half: number): Encoder {
  return ({ values, out, options, writeCodes }) => {
    const weights = importanceWeights(values, options);
    const fitted = new Uint8Array(weights ? values.length : 0), codes = new Uint8Array(32);
    for (let b = 0, o = 0; o < values.length; b += bytes, o += 32) {
      const d = weights
        ? fitSymmetric(values, o, 32, half, fitted, weights)
        : f(signedExtreme(values, o, 32) / -half);
      const inverse = inverseScale(d);
      writeF16(out, b, d);
      for (let j = 0; j < 32; j++) {
        codes[j] = nearestCode(f(f(values[o + j]! * inverse) + (half + 0.5)), 2 * half - 1);
      }
      writeCodes(codes, out, b);
    }
  };
}

/** Blocks of 32 of `bytes`, x = d q + m, f16 d and f16 m in front: from the least value to the greatest. */
export function affineEncoder(bytes: number, top: number): Encoder {
  const rangeOf = (values: Float32Array, start: number) => {
    const min = minimum(values, start, 32);
    return { d: f(f(maximum(values, start, 32) - min) / top), min };
  };
  return ({ values, out, options, writeCodes }) => {
    const weights = importanceWeights(values, options);
    const range = weights ? createAffineFitter(weights, top) : rangeOf;
    const codes = new Uint8Array(32);
    for (let b = 0, o = 0; o < values.length; b += bytes, o += 32) {
      const { d, min } = range(values, o);
      const inverse = inverseScale(d);
      writeF16(out, b, d);
      writeF16(out, b + 2, min);
      for (let j = 0; j < 32; j++) {
        codes[j] = nearestCode(f(f(f(values[o + j]! - min) * inverse) + 0.5), top);
      }
      writeCodes(codes, out, b);
    }
  };
}

/** Blocks of 32 signed bytes from byte `at` on, f16 d in front; what else a block has is up to `finish`. */
export function byteEncoder(
  at: 2 | 4,
  finish?: (
    out: Uint8Array,
    block: number,
    total: { readonly sum: number; readonly d: number },
  ) => void,
): Encoder {
  return ({ values, out }) => {
    for (let b = 0, o = 0; o < values.length; b += at + 32, o += 32) {
      const d = f(Math.abs(signedExtreme(values, o, 32)) / 127);
      const inverse = inverseScale(d);
      let sum = 0;
      for (let j = 0; j < 32; j++) {
        const code = roundHalfAway(f(values[o + j]! * inverse));
        out[b + at + j] = code;
        sum += code;
      }
      writeF16(out, b, d);
      finish?.(out, b, { sum, d });
    }
  };
}

/** Blocks of 256 of `bytes`, x = d (q - 1), f16 d at `scaleAt`: the greatest magnitude is the scale. */
export function ternaryEncoder(
  { bytes, scaleAt }: { readonly bytes: number; readonly scaleAt: number },
): Encoder {
  return ({ values, out, writeCodes }) => {
    const codes = new Uint8Array(256);
    for (let b = 0, o = 0; o < values.length; b += bytes, o += 256) {
      const d = Math.abs(signedExtreme(values, o, 256));
      const inverse = inverseScale(d);
      writeF16(out, b + scaleAt, d);
      for (let j = 0; j < 256; j++) codes[j] = roundHalfAway(f(values[o + j]! * inverse)) + 1;
      writeCodes(codes, out, b);
    }
  };
}
