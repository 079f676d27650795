// Mirostat v1 (Basu et al. 2021, algorithm 1): estimates the Zipf exponent of the distribution from its
// best tokens, derives the k at which top-k sampling has the surprise μ, draws from the top k, and moves
// μ as v2 does. N in the paper's formula is the number of candidates. k is rounded down, at least 1.

import { type Candidates, keepBest, orderTop } from "../candidates.ts";
import { defineStep, type SamplingStep } from "../step.ts";
import { MIROSTAT_RULES, MIROSTAT_VERSION, moveLimit, surpriseLimit } from "./mirostat.ts";

/** Tokens that the exponent is estimated from. */
const ESTIMATE_FROM = 100;

/** Zipf exponent ŝ = Σ t b / Σ t², with t the log ratio of ranks and b that of probabilities. */
export function zipfExponent(candidates: Candidates): number {
  orderTop(candidates, ESTIMATE_FROM);
  const { logits, size } = candidates;
  let products = 0;
  let squares = 0;
  for (let i = 0; i + 1 < Math.min(ESTIMATE_FROM, size); i++) {
    if (logits[i + 1] === -Infinity) break;
    const t = Math.log((i + 2) / (i + 1));
    products += t * (logits[i]! - logits[i + 1]!);
    squares += t * t;
  }
  return squares === 0 ? 0 : products / squares;
}

/** Tokens to keep for surprise `mu` in bits among `count` tokens of Zipf exponent `exponent`. */
export function mirostatK(
  exponent: number,
  { mu, count }: { readonly mu: number; readonly count: number },
): number {
  const epsilon = exponent - 1;
  // ε / (1 - N^-ε) tends to 1 / ln N.
  const factor = Math.abs(epsilon) < 1e-9 ? 1 / Math.log(count) : epsilon / (1 - count ** -epsilon);
  return (factor * 2 ** mu) ** (1 / exponent);
}

/** Keeps the surprise of the text near a target by a moving k. */
export const mirostatV1: SamplingStep = defineStep<{ tau: number; eta: number }>({
  name: "mirostat_v1",
  isDraw: true,
  version: { ...MIROSTAT_VERSION, number: 1 },
  rules: MIROSTAT_RULES,
  apply(candidates, { tau }, context) {
    if (candidates.size < 2) return;
    const exponent = zipfExponent(candidates);
    if (exponent <= 0) return; // equal logits: no rank is better than another
    const k = mirostatK(exponent, { mu: surpriseLimit(tau, context), count: candidates.size });
    keepBest(candidates, Math.floor(Math.min(k, candidates.size)));
  },
  accept: (probability, parameters, context) => moveLimit(probability, { ...parameters, context }),
});
