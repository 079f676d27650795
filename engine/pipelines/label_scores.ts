// Scores of a classification head as labels, best first.

import { orderedScores, softmaxInPlace } from "./encoder_text.ts";

/**
 * A label and how much the model believes in it.
 * @category Encoders
 */
export interface LabelScore {
  /** Name that the model's config gives it, else `LABEL_0` and so on. */
  readonly label: string;
  /** Probability: among all labels, or of this one by itself where the model has several at once. */
  readonly probability: number;
  /** Score as the model gives it. */
  readonly logit: number;
}

/** What the scores are of. */
export interface LabelRule {
  /** By column. */
  readonly labels: readonly string[];
  /** Labels exclude each other, or each may hold. */
  readonly isMultiLabel: boolean;
  /** How many are wanted; default: all. */
  readonly top?: number | undefined;
}

/**
 * The best labels of a row of scores.
 *
 * @throws {RangeError} If a score is NaN, or `top` is none.
 */
export function labelScores(
  scores: Float32Array,
  { labels, isMultiLabel, top }: LabelRule,
): LabelScore[] {
  const most = topOf(top, labels.length), logits = orderedScores(scores);
  const shares = isMultiLabel ? logits.map(logistic) : softmaxInPlace(logits.slice());
  return labels
    .map((label, i) => ({ label, probability: shares[i]!, logit: logits[i]! }))
    .sort((a, b) => b.logit - a.logit)
    .slice(0, most);
}

/** How many results are wanted. @throws {RangeError} If it is no count. */
export function topOf(top: number | undefined, most: number): number {
  if (top === undefined) return most;
  if (Number.isInteger(top) && top >= 1) return top;
  throw new RangeError(`Cannot use top ${top}: it is an integer of at least 1`);
}

/** 1 / (1 + e^-x). */
export function logistic(x: number): number {
  return 1 / (1 + Math.exp(-x));
}
