// Rows of activations in signed 8 bit, as they lie in memory between quantize and matmul
// (spec LF-3, MD-11). A row of K values, K a multiple of 32, is
//   K int8 codes · K/32 float32 scales · K/32 float32 sums · K/32 pairs of int16 half sums · padding to 16 bytes · outliers
// where a group of 32 has scale = max|x| / 127 (NaN if a value is not finite), code = x / scale to nearest, ties to even,
// sum = scale · Σ codes (weights with minima are multiplied by it: y = s(d Σ qc + m Σ q)), and half sums are Σ codes of
// its first and of its last 16 columns, for weights with a scale per 16 and for offsets of codes.
//
// Outliers: a few channels of many models are hundreds of times larger than the rest, and a scale that one of them sets
// leaves nothing of the 31 others. So of each run of 512 columns (the last is as long as what is left, below 1,024, and
// shorter rows are one run) up to two values have code 0 and stand here as they are, a float32 and a uint32 column each, 0
// where there are fewer; products add them, times the weights of their columns (LLM.int8(), Dettmers et al. 2022, takes
// whole columns of rows apart likewise, by one bound for all; this rule goes by a row alone). Which: see `takeOutliers`.
//
// Rows of low sums meet weights of 7 bit, and are turned as those are (quant/int7_groups.ts). They are
//   codes · a float32 scale a group of 64 · as many float32 sums · padding to 16 bytes
// with codes of 0 behind the last where it is half a group. The scale of a group may be larger (`lowScale`): of every sixteen
// columns the positive codes of the first two of each four add up to 258 at most, so do the negative ones without their sign, and
// so do those of the last two. Then a sum of four pairs of products by codes of 0..127 fits in 16 bits, 127 · 258 = 32,766, and
// is widened a quarter as often (wasm/gen/tiles_int7.ts).

import { INT7_GROUP } from "./int7_groups.ts";

/** Values that share a scale. */
export const Q8_GROUP = 32;

/**
 * Bytes of one row of `k` values.
 *
 * @throws {RangeError} If `k` is not a positive multiple of 32.
 */
export function q8RowBytes(k: number): number {
  if (!Number.isInteger(k) || k <= 0 || k % Q8_GROUP !== 0) {
    throw new RangeError(`Cannot quantise rows of ${k} values: give a multiple of ${Q8_GROUP}`);
  }
  return outliersAt(k) + OUTLIER_RUN_BYTES * outlierRuns(k);
}

/** Columns of a run, of which some outliers are kept as they are. */
export const OUTLIER_RUN = 512;
/** Outliers of a run at most. */
export const OUTLIERS = 2;
/** Bytes of the outliers of a run. */
export const OUTLIER_RUN_BYTES: number = 8 * OUTLIERS;
/** By how many times the mean square of its groups' peaks a run's largest square must be above the next one of its group. */
const OUTLIER_SHARE = 5;

/** Runs of a row of `k` values. */
export function outlierRuns(k: number): number {
  return Math.max(1, Math.floor(k / OUTLIER_RUN));
}

/** Where the outliers of a row of `k` values stand. */
export function outliersAt(k: number): number {
  return Math.ceil((k + 12 * (k / Q8_GROUP)) / 16) * 16;
}

/** Largest magnitude; NaN where a value is not finite. */
function peakOf(values: Float32Array): number {
  const most = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return Number.isFinite(most) ? most : NaN;
}

/**
 * Takes the outliers out of a run: as long as the square of its largest value is above that of the next one in its group by
 * more than five times the mean of the squares of all groups' peaks, up to two. They become 0.
 *
 * @param run Whole groups, rounded to float32.
 * @returns Where they are in the run, the largest first.
 */
export function takeOutliers(run: Float32Array): number[] {
  const { fround } = Math, taken: number[] = [];
  const groups = Array.from(
    { length: run.length / Q8_GROUP },
    (_, g) => run.subarray(g * Q8_GROUP, (g + 1) * Q8_GROUP),
  );
  const peaks = groups.map(peakOf), square = (value: number) => fround(value * value);
  let total = peaks.reduce((sum, peak) => fround(sum + square(peak)), 0);
  for (let n = 0; n < OUTLIERS; n++) {
    const most = peaks.reduce((most, peak, g) => peak > peaks[most]! ? g : most, 0);
    const group = groups[most]!, at = group.findIndex((value) => Math.abs(value) === peaks[most]);
    if (at < 0) break;
    const value = group[at]!;
    group[at] = 0;
    const next = peakOf(group), gain = fround(square(value) - square(next));
    if (!(gain > fround(fround(OUTLIER_SHARE / groups.length) * total))) {
      group[at] = value;
      break;
    }
    total = fround(total - gain);
    peaks[most] = next;
    taken.push(most * Q8_GROUP + at);
  }
  return taken;
}

/** Columns that a row of low sums of `k` values has, whole groups. */
export function lowColumns(k: number): number {
  return Math.ceil(k / INT7_GROUP) * INT7_GROUP;
}

/** Bytes of one row of low sums of `k` values. */
export function lowRowBytes(k: number): number {
  return Math.ceil(lowColumns(k) * (1 + 8 / INT7_GROUP) / 16) * 16;
}

/** Eight codes of a sign are 254 at most before they are rounded, which adds a half to each; twice, for the larger of two signs. */
const LOW_PART = Math.fround(1 / 508);

/** Smallest normal float32: below it a scale has lost bits. */
const LEAST_SCALE = 2 ** -126;

/**
 * The scale of a group in a row of low sums.
 *
 * @param values Of the group, turned.
 * @param scale What it would be without.
 */
export function lowScale(values: Float32Array, scale: number): number {
  const { abs, fround, max } = Math;
  let largest = 0;
  for (let i = 0; i < values.length; i += 16) {
    for (const at of [i, i + 2]) {
      const sum = (of: (value: number) => number) => {
        const part = (j: number) => of(values[at + j]!);
        const four = (j: number) =>
          fround(fround(part(j) + part(j + 4)) + fround(part(j + 8) + part(j + 12)));
        return fround(four(0) + four(1));
      };
      // Twice the larger of what the positive and the negative ones add up to.
      const twice = fround(sum(abs) + abs(sum((value) => value)));
      largest = max(largest, fround(twice * LOW_PART));
    }
  }
  const low = max(scale, largest);
  return low < LEAST_SCALE ? 0 : low;
}
