// What `post_transform` makes of the scores of a row, as onnxruntime computes it (ml_common.h): also that one
// score for two classes is written as two.

import { text } from "../../derivation/attributes.ts";

/** Names of the transforms, in the order of their numbers in TreeEnsemble. */
export const POST_TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"] as const;

/** Rule of the attribute. */
export const postTransform = text("NONE", { choices: POST_TRANSFORMS });

/** 1 / (1 + exp(-x)). */
export function logistic(x: number): number {
  return 1 / (1 + Math.exp(-x));
}

// Winitzki's approximation of the inverse error function, with his a = 0.147.
function inverseErf(x: number): number {
  const log = Math.log((1 - x) * (1 + x));
  const v = 2 / (Math.PI * 0.147) + log / 2;
  return Math.sign(x) * Math.sqrt(Math.sqrt(v * v - log / 0.147) - v);
}

/** The quantile of a probability; NaN outside of [0, 1]. */
export function probit(x: number): number {
  return Math.SQRT2 * inverseErf(2 * x - 1);
}

/** Transforms two and more scores of a row in place. */
export function transformScores(scores: Float32Array, transform: string): void {
  if (transform === "NONE") return;
  if (transform === "LOGISTIC" || transform === "PROBIT") {
    const compute = transform === "LOGISTIC" ? logistic : probit;
    for (let i = 0; i < scores.length; i++) scores[i] = compute(scores[i]!);
    return;
  }
  // SOFTMAX_ZERO leaves out classes without a score.
  const skipsZero = transform === "SOFTMAX_ZERO";
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  let sum = 0;
  for (let i = 0; i < scores.length; i++) {
    const score = scores[i]!;
    if (skipsZero && Math.abs(score) <= 1e-7) scores[i] = score * Math.exp(-largest);
    else sum += scores[i] = Math.exp(score - largest);
  }
  for (let i = 0; i < scores.length; i++) scores[i] = scores[i]! / sum;
}

/** Writes the only score of a row for two classes: the probability of the second one, or its odds. */
export function writePair(
  pair: Float32Array,
  { score, transform, isOdds = false }: {
    readonly score: number;
    readonly transform: string;
    readonly isOdds?: boolean;
  },
): void {
  if (transform === "PROBIT") pair.set([probit(score), 0]);
  else if (transform === "LOGISTIC") pair.set([logistic(-score), logistic(score)]);
  else pair.set([isOdds ? -score : 1 - score, score]);
}

/** Index of the greatest element; the first of several, and 0 where nothing can be compared. */
export function indexOfGreatest(scores: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < scores.length; i++) if (scores[i]! > scores[best]!) best = i;
  return best;
}
