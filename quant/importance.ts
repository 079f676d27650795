// What encoders make of the importance of columns: a weight for every value, which grows with the value too,
// since a scale that fits the large ones serves all others better than the other way round:
//   w = importance · sqrt(mean square of the surroundings + x²), as in llama.cpp.
// No column counts for nothing at all, so that a text that never touches some of them cannot ruin their scales.

import { fitAffine, WEIGHTED_SEARCH } from "./fit.ts";
import type { EncodeOptions } from "./format.ts";

const LEAST = 1e-6;

/** Squares of the largest float16 over 2^32 tokens: more is damage, and its products leave float32. */
const MOST = 2 ** 64;

/** The first column whose importance is negative, not a number, or larger than any inputs make it; -1 if none is. */
export function findBadImportance(importance: Float32Array): number {
  return importance.findIndex((value) => !(value >= 0 && value <= MOST));
}

/**
 * A weight for every value, or undefined where no importance is given.
 *
 * @param values Whole rows.
 * @param span Values whose mean square counts together; 0: a row.
 * @throws {RangeError} If there is not one value a column, one is bad as `findBadImportance` says, or a weight is beyond
 *   float32.
 */
export function importanceWeights(
  values: Float32Array,
  { importance }: EncodeOptions,
  span = 0,
): Float32Array | undefined {
  if (!importance) return undefined;
  const columns = importance.length;
  if (columns === 0 || values.length % columns !== 0) {
    throw new RangeError(
      `Cannot weigh ${values.length} values by the importance of ${columns} columns: no whole rows`,
    );
  }
  const bad = findBadImportance(importance);
  if (bad >= 0) {
    throw new RangeError(
      `Cannot weigh values: the importance of column ${bad} is ${importance[bad]}`,
    );
  }
  const unit = unitOf(importance);
  const mean = importance.reduce((sum, value) => sum + value / unit, 0) / columns;
  const least = mean === 0 ? 1 : LEAST * mean;
  const weights = new Float32Array(values.length);
  const length = span === 0 ? columns : span;
  for (let start = 0; start < values.length; start += length) {
    let squares = 0;
    for (let i = start; i < start + length; i++) squares += values[i]! * values[i]!;
    const around = squares / length;
    for (let i = start; i < start + length; i++) {
      const size = Math.sqrt(around + values[i]! * values[i]!);
      weights[i] = (importance[i % columns]! / unit + least) * (size === 0 ? 1 : size);
    }
  }
  const beyond = weights.indexOf(Infinity);
  if (beyond < 0) return weights;
  throw new RangeError(
    `Cannot weigh value ${beyond}, ${values[beyond]}, by the importance of its column, ${
      importance[beyond % columns]
    }: the product is beyond float32`,
  );
}

/** By what importance is divided: a factor of all of it says nothing, and sums of large weights leave float32. */
function unitOf(importance: Float32Array): number {
  const largest = importance.reduce((most, value) => Math.max(most, value), 0);
  return largest > 2 ** 32 || largest < 2 ** -32 && largest > 0
    ? 2 ** Math.floor(Math.log2(largest))
    : 1;
}

/** Finds scale and minimum of a block of 32 by its weights, for codes `0 … top`. */
export function createAffineFitter(
  weights: Float32Array,
  top: number,
): (values: Float32Array, start: number) => { d: number; min: number } {
  const codes = new Uint8Array(weights.length);
  const trial = new Uint8Array(32);
  const search = { ...WEIGHTED_SEARCH, maxCode: top };
  return (values, start) => {
    const block = weights.subarray(start, start + 32);
    const { scale, minimum } = fitAffine(values, start, block, search, codes, trial);
    return { d: scale, min: -minimum };
  };
}
