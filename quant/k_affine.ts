// What the encoders of Q4_K and Q5_K share: fitting eight sub-blocks of 32 under one super-scale, and
// choosing the codes anew once scales and minima are rounded to 6 bits. After ggml's reference.

import { roundHalfEven } from "./extremes.ts";
import { type AffineSearch, fitAffine } from "./fit.ts";
import { readF16, writeF16 } from "./half.ts";
import { minimumCode, scaleCode, writeScales } from "./k_scales.ts";

const f = Math.fround;

/** Fits super-blocks of 256 values into headers and codes. */
export type SuperBlockFitter = (
  values: Float32Array,
  start: number,
  out: Uint8Array,
  at: number,
) => Uint8Array;

/**
 * A function that writes the 16 bytes of header (f16 d, f16 dmin, scales and minima) of the super-block
 * of 256 values at `start` to `out` at `at`, and returns its 256 codes in a buffer that it reuses.
 */
export function createSuperBlockFitter(search: AffineSearch): SuperBlockFitter {
  const block = new Float32Array(256);
  const codes = new Uint8Array(256);
  const trial = new Uint8Array(32);
  const weights = new Float32Array(32);
  const scales = new Float32Array(8);
  const minima = new Float32Array(8);

  return (values, start, out, at) => {
    block.set(values.subarray(start, start + 256));
    for (let sub = 0; sub < 8; sub++) {
      weigh(block, sub * 32, weights);
      const fit = fitAffine(block, sub * 32, weights, search, codes, trial);
      scales[sub] = fit.scale;
      minima[sub] = fit.minimum;
    }
    const maxScale = Math.max(0, ...scales);
    const maxMinimum = Math.max(0, ...minima);
    writeF16(out, at, f(maxScale / 63));
    writeF16(out, at + 2, f(maxMinimum / 63));
    writeScales(out, at + 4, sixBits(scales, maxScale), sixBits(minima, maxMinimum));

    for (let sub = 0; sub < 8; sub++) {
      const d = f(readF16(out, at) * scaleCode(out, at + 4, sub));
      if (d === 0) continue;
      const minimum = f(readF16(out, at + 2) * minimumCode(out, at + 4, sub));
      for (let i = sub * 32; i < sub * 32 + 32; i++) {
        const code = roundHalfEven(f(f(block[i]! + minimum) / d));
        codes[i] = Math.max(0, Math.min(search.maxCode, code));
      }
    }
    return codes;
  };
}

// Large values count more: |x| above the root mean square of the sub-block.
function weigh(block: Float32Array, start: number, weights: Float32Array): void {
  let squares = 0;
  for (let i = 0; i < 32; i++) squares = f(squares + f(block[start + i]! * block[start + i]!));
  const mean = f(Math.sqrt(f(squares / 32)));
  for (let i = 0; i < 32; i++) weights[i] = mean + Math.abs(block[start + i]!);
}

function sixBits(parts: Float32Array, greatest: number): Uint8Array {
  const inverse = greatest > 0 ? f(63 / greatest) : 0;
  return Uint8Array.from(parts, (part) => Math.min(63, roundHalfEven(f(inverse * part))));
}
