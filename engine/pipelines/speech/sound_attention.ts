// Which part of a window of sound each token looks at: attention of chosen heads of the decoder, computed on the host from
// queries and keys that the graph gives out, or given out as it is. It is only done for answers that were taken, so that the loop that makes
// them is as fast as ever.

import { expNegative } from "../../decode/sampling/exp.ts";
import type { WordHeads } from "../../decode/runtime.ts";
import { crossOutputs } from "../../models/blocks/cross_attention.ts";
import type { Steps } from "../../../quant/steps.ts";
import type { Executable } from "../../run/executable.ts";

/** Rows of each chosen head: f32[rows, headDim]; with `looks` what they look at, in place of queries. */
export type HeadRows = readonly Float32Array[];

/** Room for rows of all chosen heads. */
export function createHeadRows({ heads, headDim }: WordHeads, rows: number): HeadRows {
  return heads.map(() => new Float32Array(rows * headDim));
}

/** Rows of the last step: the first of them, how many, and where they go. */
export interface CopiedRows {
  readonly from: number;
  readonly count: number;
  readonly to: number;
}

/** Copies what the last step made of its rows: queries of tokens, or keys of sound. */
export function copyHeadRows(
  target: HeadRows,
  executable: Executable,
  { words, role, from, count, to }: CopiedRows & {
    readonly words: WordHeads;
    readonly role: "query" | "key";
  },
): void {
  const { heads, headCount, keyHeadCount, headDim, looks } = words;
  const width = role === "query" ? headCount : keyHeadCount;
  for (const [i, [layer, head]] of heads.entries()) {
    const name = looks ? looks[layer]! : crossOutputs(layer)[role];
    const source = executable.output!(name) as Float32Array;
    if (looks) {
      const start = (head * source.length / headCount / headDim + from) * headDim;
      target[i]!.set(source.subarray(start, start + count * headDim), to * headDim);
      continue;
    }
    const place = role === "query" ? head : Math.floor(head * keyHeadCount / headCount);
    for (let row = 0; row < count; row++) {
      const start = ((from + row) * width + place) * headDim;
      target[i]!.set(source.subarray(start, start + headDim), (to + row) * headDim);
    }
  }
}

/** The first `length` positions of rows. */
export function looksUpTo(
  rows: Float32Array,
  { headDim, length }: Pick<WordHeads, "headDim"> & { readonly length: number },
): Float32Array {
  const found = new Float32Array(rows.length / headDim * length);
  for (let row = 0; row * headDim < rows.length; row++) {
    found.set(rows.subarray(row * headDim, row * headDim + length), row * length);
  }
  return found;
}

/**
 * softmax(q k) of one head: f32[rows, length].
 *
 * @param length Positions that are given out; all take part in the softmax.
 */
export function* attentionOf(
  queries: Float32Array,
  keys: Float32Array,
  { headDim, scale, length }: Pick<WordHeads, "headDim" | "scale"> & { readonly length: number },
): Steps<Float32Array> {
  const rows = queries.length / headDim, positions = keys.length / headDim;
  const weights = new Float32Array(rows * length), scores = new Float64Array(positions);
  for (let row = 0; row < rows; row++) {
    const query = queries.subarray(row * headDim, (row + 1) * headDim);
    let max = -Infinity, sum = 0;
    for (let at = 0; at < positions; at++) {
      let score = 0;
      for (let i = 0, key = at * headDim; i < headDim; i++, key++) score += query[i]! * keys[key]!;
      scores[at] = score * scale;
      if (scores[at]! > max) max = scores[at]!;
    }
    for (let at = 0; at < positions; at++) sum += scores[at] = expNegative(scores[at]! - max);
    for (let at = 0; at < length; at++) weights[row * length + at] = scores[at]! / sum;
    yield;
  }
  return weights;
}
