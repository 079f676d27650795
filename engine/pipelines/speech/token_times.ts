// When each token has been said, by how tokens look at the sound: dynamic time warping over the attention of some heads, as
// openai/whisper and transformers (`_extract_token_timestamps`) have it. Of each head what all tokens look at alike is taken
// away (mean and deviation over the tokens), spikes are cut off by a median over time, and the heads' mean is what the
// cheapest path from the first token and position to the last goes along. A token looks at what it is followed by: where
// its row of the path begins, it is over.

import type { Steps } from "../../../quant/steps.ts";
import type { WordHeads } from "../../decode/runtime.ts";
import { attentionOf, type HeadRows, looksUpTo } from "./sound_attention.ts";

/** Positions of the median: `median_filter_width` of every Whisper. */
const MEDIAN = 7;

/**
 * The position at which each token ends.
 *
 * @param queries Of each token; what they look at, where there are no keys.
 * @param length Positions that hold sound.
 */
export function* tokenTimes(
  { queries, keys }: { readonly queries: HeadRows; readonly keys: HeadRows | undefined },
  { length, words }: { readonly length: number; readonly words: WordHeads },
): Steps<number[]> {
  const rows = queries[0]!.length / words.headDim;
  const sum = new Float64Array(rows * length);
  for (const [head, query] of queries.entries()) {
    const weights = keys
      ? yield* attentionOf(query, keys[head]!, { ...words, length })
      : looksUpTo(query, { ...words, length });
    normalize(weights, length);
    addMedians(sum, weights, length);
    yield;
  }
  for (let i = 0; i < sum.length; i++) sum[i]! /= -queries.length;
  return warp(sum, length);
}

/** Takes each column's mean away, and divides by its deviation; row by row, as the values lie. */
function normalize(weights: Float32Array, columns: number): void {
  const rows = weights.length / columns;
  const means = new Float64Array(columns), deviations = new Float64Array(columns);
  for (let row = 0; row < weights.length; row += columns) {
    for (let column = 0; column < columns; column++) means[column]! += weights[row + column]!;
  }
  for (let column = 0; column < columns; column++) means[column]! /= rows;
  for (let row = 0; row < weights.length; row += columns) {
    for (let column = 0; column < columns; column++) {
      const off = weights[row + column]! - means[column]!;
      deviations[column]! += off * off;
    }
  }
  for (let column = 0; column < columns; column++) {
    // One token alone deviates from nothing.
    deviations[column] = Math.sqrt(deviations[column]! / rows) || 1;
  }
  for (let row = 0; row < weights.length; row += columns) {
    for (let column = 0; column < columns; column++) {
      weights[row + column] = (weights[row + column]! - means[column]!) / deviations[column]!;
    }
  }
}

/** Adds the median of each value and its neighbours in the row, which is mirrored at both ends. */
function addMedians(sum: Float64Array, weights: Float32Array, columns: number): void {
  const half = MEDIAN >> 1, near = new Float32Array(MEDIAN);
  const isShort = columns <= half;
  for (let at = 0; at < weights.length; at++) {
    if (isShort) {
      sum[at]! += weights[at]!;
      continue;
    }
    const column = at % columns, row = at - column;
    for (let i = 0; i < MEDIAN; i++) {
      const place = Math.abs(column + i - half);
      const value = weights[row + (place < columns ? place : 2 * (columns - 1) - place)]!;
      let to = i;
      for (; to > 0 && near[to - 1]! > value; to--) near[to] = near[to - 1]!;
      near[to] = value;
    }
    sum[at]! += near[half]!;
  }
}

/** Moves of a path: to the next row and column, to the next row, to the next column. */
const BOTH = 0, ROW = 1, COLUMN = 2;

/**
 * The column at which the cheapest path comes to each row.
 *
 * @param costs f64[rows, columns].
 */
function warp(costs: Float64Array, columns: number): number[] {
  const rows = costs.length / columns, width = rows + 1;
  const moves = new Uint8Array(width * (columns + 1));
  // In float32 as its models have it, so that equal paths are the same ones.
  let before = new Float32Array(width).fill(Infinity), here = new Float32Array(width);
  before[0] = 0;
  for (let column = 1; column <= columns; column++) {
    here[0] = Infinity;
    for (let row = 1; row <= rows; row++) {
      const both = before[row - 1]!, down = here[row - 1]!, on = before[row]!;
      const move = both < down && both < on ? BOTH : down < both && down < on ? ROW : COLUMN;
      const least = move === BOTH ? both : move === ROW ? down : on;
      here[row] = costs[(row - 1) * columns + column - 1]! + least;
      moves[column * width + row] = move;
    }
    [before, here] = [here, before];
  }
  const found = new Array<number>(rows).fill(0);
  for (let row = rows, column = columns; row > 0;) {
    found[row - 1] = Math.max(0, column - 1);
    const move = column === 0 ? ROW : moves[column * width + row]!;
    if (move !== COLUMN) row--;
    if (move !== ROW) column--;
  }
  return found;
}
