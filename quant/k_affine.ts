// What the encoders of Q4_K and Q5_K share: fitting eight sub-blocks of 32 under one super-scale, and
// choosing the codes anew once scales and minima are rounded to 6 bits. After ggml's reference.

import type { BlockFormat } from "./block_format.ts";
import { roundHalfEven } from "./extremes.ts";
import { type AffineSearch, fitAffine, WEIGHTED_SEARCH } from "./fit.ts";
import { fitMultiples, type Multiples } from "./fit_multiples.ts";
import { readF16, writeF16 } from "./half.ts";
import { importanceWeights } from "./importance.ts";
import { minimumCode, scaleCode, writeScales } from "./k_scales.ts";

const f = Math.fround;

/** The encoder of super-blocks of `bytes`. */
export function superBlockEncoder(
  bytes: number,
  search: AffineSearch,
): NonNullable<BlockFormat["encode"]> {
  return ({ values, out, options, writeCodes }) => {
    const weights = importanceWeights(values, options, 256);
    const fit = createSuperBlockFitter(search);
    for (let b = 0, o = 0; o < values.length; b += bytes, o += 256) {
      writeCodes(fit(values, o, out, b, weights), out, b);
    }
  };
}

/** Fits super-blocks of 256 values into headers and codes. */
type SuperBlockFitter = (
  values: Float32Array,
  start: number,
  out: Uint8Array,
  at: number,
  weights?: Float32Array,
) => Uint8Array;

/**
 * A function that writes the 16 bytes of header (f16 d, f16 dmin, scales and minima) of the super-block
 * of 256 values at `start` to `out` at `at`, and returns its 256 codes in a buffer that it reuses. With
 * weights, one for each of `values`, it searches longer, as llama.cpp does with an importance matrix.
 */
function createSuperBlockFitter(search: AffineSearch): SuperBlockFitter {
  const block = new Float32Array(256);
  const codes = new Uint8Array(256);
  const trial = new Uint8Array(32);
  const weights = new Float32Array(32);
  const scales = new Float32Array(8);
  const minima = new Float32Array(8);
  const sums = new Float32Array(8);

  return (values, start, out, at, given) => {
    block.set(values.subarray(start, start + 256));
    for (let sub = 0; sub < 8; sub++) {
      if (given) weights.set(given.subarray(start + sub * 32, start + sub * 32 + 32));
      else weigh(block, sub * 32, weights);
      const searched = given ? { ...search, ...WEIGHTED_SEARCH } : search;
      const fit = fitAffine(block, sub * 32, weights, searched, codes, trial);
      scales[sub] = fit.scale;
      minima[sub] = fit.minimum;
      sums[sub] = weights.reduce((sum, weight) => sum + weight, 0);
    }
    const header = given ? weightedHeader(scales, minima, sums) : plainHeader(scales, minima);
    writeF16(out, at, header.scale.unit);
    writeF16(out, at + 2, header.minimum.unit);
    writeScales(out, at + 4, header.scale.codes, header.minimum.codes);
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

interface SuperScales {
  readonly scale: Multiples;
  readonly minimum: Multiples;
}

function plainHeader(scales: Float32Array, minima: Float32Array): SuperScales {
  return { scale: sixBits(scales), minimum: sixBits(minima) };
}

function weightedHeader(
  scales: Float32Array,
  minima: Float32Array,
  sums: Float32Array,
): SuperScales {
  return { scale: fitMultiples(scales, sums, 63), minimum: fitMultiples(minima, sums, 63) };
}

function sixBits(parts: Float32Array): Multiples {
  const greatest = Math.max(0, ...parts);
  const inverse = greatest > 0 ? f(63 / greatest) : 0;
  const codes = Uint8Array.from(parts, (part) => Math.min(63, roundHalfEven(f(inverse * part))));
  return { unit: f(greatest / 63), codes };
}
