// Log-probabilities of raw logits, before any sampling step: what `logprobs` of an answer, perplexity and
// comparisons of engines are about. Sums are in double precision.

import { expNegative } from "./exp.ts";

/**
 * One of the likely tokens at a position.
 * @category Sampling
 */
export interface TokenAlternative {
  /** Token id. */
  readonly id: number;
  /** Natural logarithm of its probability. */
  readonly logProbability: number;
}

/** The greatest logit, and the logarithm of what all are together, relative to it. */
interface Normalizer {
  readonly max: number;
  readonly logMass: number;
}

function normalizerOf(logits: Float32Array): Normalizer {
  let max = -Infinity;
  for (let i = 0; i < logits.length; i++) if (logits[i]! > max) max = logits[i]!;
  let mass = 0;
  for (let i = 0; i < logits.length; i++) mass += expNegative(relativeTo(max, logits[i]!));
  if (max === -Infinity || Number.isNaN(mass)) {
    throw new RangeError("Cannot normalise logits: they hold NaN, or all are -Infinity");
  }
  return { max, logMass: Math.log(mass) };
}

// Logits of +Infinity share all probability: they are 0 above each other, and all else is infinitely below.
function relativeTo(max: number, logit: number): number {
  return logit === max ? 0 : logit - max;
}

function logProbabilityIn({ max, logMass }: Normalizer, logit: number): number {
  return relativeTo(max, logit) - logMass;
}

/**
 * log Σ exp(logits).
 *
 * @throws {RangeError} If a logit is NaN, or all are -Infinity.
 */
export function logSumExp(logits: Float32Array): number {
  const { max, logMass } = normalizerOf(logits);
  return max + logMass;
}

/**
 * Log-probability of one token.
 *
 * @throws {RangeError} If the token has no logit, a logit is NaN, or all are -Infinity.
 *
 * @example
 * ```ts
 * import { logProbability } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const logits = new Float32Array([0, Math.log(3)]);
 * assertEquals(Math.exp(logProbability(logits, 1)).toFixed(3), "0.750");
 * ```
 * @category Sampling
 */
export function logProbability(logits: Float32Array, token: number): number {
  const logit = logits[token];
  if (logit === undefined) {
    throw new RangeError(`Cannot score token ${token}: there are ${logits.length} logits`);
  }
  return logProbabilityIn(normalizerOf(logits), logit);
}

/**
 * The `count` most probable tokens, best first, equals by lower id.
 *
 * @throws {RangeError} If a logit is NaN, or all are -Infinity.
 *
 * @example
 * ```ts
 * import { topAlternatives } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(topAlternatives(new Float32Array([1, 5, 2]), 2).map(({ id }) => id), [1, 2]);
 * ```
 * @category Sampling
 */
export function topAlternatives(logits: Float32Array, count: number): TokenAlternative[] {
  const normalizer = normalizerOf(logits);
  const best: number[] = [];
  if (count < 1) return [];
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    if (best.length === count && !(logit > logits[best[count - 1]!]!)) continue;
    let at = best.length === count ? count - 1 : best.length;
    while (at > 0 && logits[best[at - 1]!]! < logit) at--;
    if (best.length === count) best.pop();
    best.splice(at, 0, id);
  }
  return best.map((id) => ({ id, logProbability: logProbabilityIn(normalizer, logits[id]!) }));
}
