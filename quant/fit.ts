// Searches for the scale (and minimum) of a sub-block of the K formats, after ggml's reference
// quantisers: codes are fitted by trying a row of scales around the obvious one and solving the weighted
// least squares problem for each. Every operation is rounded to float32 in ggml's order, so that encoded
// blocks are the same bytes.

import { roundHalfEven, signedExtreme } from "./extremes.ts";

const f = Math.fround;
const TENTH = f(0.1);

/** A sub-block whose values are all below this counts as zero. */
export const ZERO_LIMIT: number = f(1e-15);

/** How `fitAffine` searches. */
export interface AffineSearch {
  /** Greatest code. */
  readonly maxCode: number;
  /** First trial: how much is added to the greatest code when the scale is computed. */
  readonly from: number;
  /** Number of trials after the first, a tenth apart unless `stride` says otherwise. */
  readonly trials: number;
  readonly stride?: number;
  /** Whether the error is the weighted sum of magnitudes instead of squares. */
  readonly absolute: boolean;
}

/** How to search where weights are known: from further down, in finer steps, for squares. */
export const WEIGHTED_SEARCH = { from: -0.9, trials: 36, stride: 0.05, absolute: false } as const;

/** Scale and minimum that `fitAffine` found: values are about `scale * code - minimum`. */
export interface AffineFit {
  /** Scale, not negative. */
  scale: number;
  /** Minimum with its sign turned, not negative. */
  minimum: number;
}

/**
 * Fits `scale * code - minimum` to `weights.length` values.
 *
 * @param values Source.
 * @param start First value.
 * @param weights One for each value.
 * @param codes Receives the codes from `start` on.
 * @param trial Scratch for as many codes as there are weights.
 */
export function fitAffine(
  values: Float32Array,
  start: number,
  weights: Float32Array,
  search: AffineSearch,
  codes: Uint8Array,
  trial: Uint8Array,
): AffineFit {
  const { maxCode, from, trials, absolute, stride = TENTH } = search;
  const count = weights.length;
  let min = values[start]!;
  let max = min;
  let sumW = weights[0]!;
  let sumX = f(sumW * min);
  for (let i = 1; i < count; i++) {
    const x = values[start + i]!;
    if (x < min) min = x;
    if (x > max) max = x;
    sumW = f(sumW + weights[i]!);
    sumX = f(sumX + f(weights[i]! * x));
  }
  if (min > 0) min = 0;
  if (max === min) {
    codes.fill(0, start, start + count);
    return { scale: 0, minimum: -min };
  }

  const errorOf = (scale: number, offset: number, of: Uint8Array, at: number): number => {
    let error = 0;
    for (let i = 0; i < count; i++) {
      const difference = f(f(f(scale * of[at + i]!) + offset) - values[start + i]!);
      const loss = absolute ? Math.abs(difference) : f(difference * difference);
      error = f(error + f(weights[i]! * loss));
    }
    return error;
  };

  let inverse = f(maxCode / f(max - min));
  let scale = f(1 / inverse);
  for (let i = 0; i < count; i++) {
    const code = roundHalfEven(f(inverse * f(values[start + i]! - min)));
    codes[start + i] = Math.max(0, Math.min(maxCode, code));
  }
  let bestError = errorOf(scale, min, codes, start);

  for (let step = 0; step <= trials; step++) {
    inverse = f(f(f(from + f(stride * step)) + maxCode) / f(max - min));
    let sumL = 0;
    let sumL2 = 0;
    let sumXL = 0;
    for (let i = 0; i < count; i++) {
      const x = values[start + i]!;
      const code = Math.max(0, Math.min(maxCode, roundHalfEven(f(inverse * f(x - min)))));
      trial[i] = code;
      const weighted = f(weights[i]! * code);
      sumL = f(sumL + weighted);
      sumL2 = f(sumL2 + f(weighted * code));
      sumXL = f(sumXL + f(weighted * x));
    }
    const determinant = f(f(sumW * sumL2) - f(sumL * sumL));
    if (!(determinant > 0)) continue;
    let trialScale = f(f(f(sumW * sumXL) - f(sumX * sumL)) / determinant);
    let trialMin = f(f(f(sumL2 * sumX) - f(sumL * sumXL)) / determinant);
    if (trialMin > 0) {
      trialMin = 0;
      trialScale = f(sumXL / sumL2);
    }
    const error = errorOf(trialScale, trialMin, trial, 0);
    if (error < bestError) {
      codes.set(trial, start);
      bestError = error;
      scale = trialScale;
      min = trialMin;
    }
  }
  return { scale, minimum: -min };
}

/**
 * Fits `scale * (code - half)` to `count` values by trying scales. Codes are `0 … 2 * half - 1`.
 *
 * @param codes Receives the codes from `start` on.
 * @param weights By index of the value; default: its square.
 * @returns The scale, of either sign.
 */
export function fitSymmetric(
  values: Float32Array,
  start: number,
  count: number,
  half: number,
  codes: Uint8Array,
  weights?: Float32Array,
): number {
  const extreme = signedExtreme(values, start, count);
  codes.fill(0, start, start + count);
  if (Math.abs(extreme) < ZERO_LIMIT) return 0;

  let scale = 0;
  let best = 0;
  // ggml tries the plain scale first, then the others from the smallest on.
  for (const step of [0, -9, -8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9]) {
    const inverse = f(-f(half + f(TENTH * step)) / extreme);
    let sumLX = 0;
    let sumL2 = 0;
    for (let i = start; i < start + count; i++) {
      const x = values[i]!;
      const code = clampCode(f(inverse * x), half);
      const weight = weights ? weights[i]! : f(x * x);
      sumLX = f(sumLX + f(f(weight * x) * code));
      sumL2 = f(sumL2 + f(f(weight * code) * code));
    }
    const isBetter = step === 0 || (sumL2 > 0 && f(sumLX * sumLX) > f(best * sumL2));
    if (!isBetter) continue;
    for (let i = start; i < start + count; i++) {
      codes[i] = half + clampCode(f(inverse * values[i]!), half);
    }
    scale = sumL2 === 0 ? 0 : f(sumLX / sumL2);
    best = f(scale * sumLX);
  }
  return scale;
}

/**
 * Fits `scale * (code - half)` to `count` values by moving one code at a time while that helps, five
 * rounds at most. Weights and codes as in {@linkcode fitSymmetric}.
 *
 * @returns The scale, of either sign.
 */
export function fitByDescent(
  values: Float32Array,
  start: number,
  count: number,
  half: number,
  codes: Uint8Array,
): number {
  const extreme = signedExtreme(values, start, count);
  codes.fill(0, start, start + count);
  if (Math.abs(extreme) < ZERO_LIMIT) return 0;

  const inverse = f(-half / extreme);
  let sumLX = 0;
  let sumL2 = 0;
  for (let i = start; i < start + count; i++) {
    const x = values[i]!;
    const code = clampCode(f(inverse * x), half);
    codes[i] = code + half;
    const weight = f(x * x);
    sumLX = f(sumLX + f(f(weight * x) * code));
    sumL2 = f(sumL2 + f(f(weight * code) * code));
  }
  for (let round = 0, changed = true; round < 5 && changed; round++) {
    changed = false;
    for (let i = start; i < start + count; i++) {
      const x = values[i]!;
      const weight = f(x * x);
      const code = codes[i]! - half;
      let restLX = f(sumLX - f(f(weight * x) * code));
      let restL2 = f(sumL2 - f(f(weight * code) * code));
      if (!(restLX > 0)) continue;
      const moved = clampCode(f(f(x * restL2) / restLX), half);
      if (moved === code) continue;
      restLX = f(restLX + f(f(weight * x) * moved));
      restL2 = f(restL2 + f(f(weight * moved) * moved));
      if (restL2 > 0 && f(f(restLX * restLX) * sumL2) > f(f(sumLX * sumLX) * restL2)) {
        codes[i] = moved + half;
        sumLX = restLX;
        sumL2 = restL2;
        changed = true;
      }
    }
  }
  return sumL2 > 0 ? f(sumLX / sumL2) : 0;
}

function clampCode(value: number, half: number): number {
  return Math.max(-half, Math.min(half - 1, roundHalfEven(value)));
}
