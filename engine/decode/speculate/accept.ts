// How proposed tokens are judged so that what comes out is distributed as if nobody had proposed anything (Leviathan et
// al. 2023, Chen et al. 2023; Inferflow's algorithm 1, with target and draft in their places): a token x that was drawn
// from q is taken with chance min(1, p(x) / q(x)); otherwise one is drawn from norm(max(0, p − q)). p is what the sampler
// makes of the target's logits, whatever its chain, and q any distribution.
//
// A token that was proposed without a draw needs none of this: whoever draws from p, as ever, and looks whether it is
// the proposed one, has done the same.

import type { TokenDistribution } from "../sampling/sampler.ts";
import { clearTable, setTableValue, tableValue, type TokenTable } from "../sampling/token_table.ts";

/** Probabilities of tokens; others have none. The order is that of cumulative sums. */
export interface Distribution {
  readonly ids: ArrayLike<number>;
  readonly probabilities: ArrayLike<number>;
}

/** Chance with which a token is taken that has probability `p`, and was drawn where it had `q`. */
export function acceptance(p: number, q: number): number {
  return Math.min(1, p / q);
}

/**
 * Makes of p, in place, what a token is drawn from when the one from q was refused: norm(max(0, p − q)).
 *
 * @param q Values by token id.
 * @returns False where p has nothing that q has not: then no token is refused.
 */
export function makeResidual({ ids, probabilities }: TokenDistribution, q: TokenTable): boolean {
  let sum = 0;
  for (let i = 0; i < ids.length; i++) {
    const left = Math.max(0, probabilities[i]! - tableValue(q, ids[i]!));
    probabilities[i] = left;
    sum += left;
  }
  if (sum <= 0) return false;
  for (let i = 0; i < ids.length; i++) probabilities[i]! /= sum;
  return true;
}

/** The first token at which the sum of probabilities is above `uniform`, a number in [0, 1). */
export function drawToken({ ids, probabilities }: Distribution, uniform: number): number {
  let sum = 0, last = 0;
  for (let i = 0; i < ids.length; i++) {
    if (probabilities[i] === 0) continue;
    sum += probabilities[i]!;
    last = ids[i]!;
    if (uniform < sum) return last;
  }
  return last; // Rounding kept the sum below 1.
}

/** Probability of a token. */
function probabilityOf({ ids, probabilities }: Distribution, token: number): number {
  for (let i = 0; i < ids.length; i++) if (ids[i] === token) return probabilities[i]!;
  return 0;
}

/** What was proposed for a place. */
export interface DrawnToken {
  readonly token: number;
  /** The distribution that it was drawn from. */
  readonly from: Distribution;
}

/**
 * Takes the proposed token or another one: it is distributed as p.
 *
 * @param p Changed where the proposed token is refused.
 * @param table Scratch, of the vocabulary.
 * @param coin Next uniform number in [0, 1): one to judge by, and one to draw by if need be.
 */
export function judge(
  p: TokenDistribution,
  { proposed: { token, from }, table, coin }: {
    readonly proposed: DrawnToken;
    readonly table: TokenTable;
    coin(): number;
  },
): number {
  if (coin() < acceptance(probabilityOf(p, token), probabilityOf(from, token))) return token;
  clearTable(table);
  for (let i = 0; i < from.ids.length; i++) {
    setTableValue(table, { id: from.ids[i]!, value: from.probabilities[i]! });
  }
  return makeResidual(p, table) ? drawToken(p, coin()) : token;
}
