// Who guesses what comes next: a draft model, the text itself, earlier answers. The loop (speculation.ts) asks in two
// turns, because most guesses are judged by how they were come by: first how sure the proposer is, which costs next to
// nothing, then, if checking pays, for the tokens.

import type { TokenDistribution } from "../sampling/sampler.ts";

/** Tokens that may come next, one after the other. */
export interface Proposal {
  /** The first `count` hold; the proposer's, until its next call. */
  readonly tokens: Int32Array;
  readonly count: number;
  /** By token, the distribution that it was drawn from; absent where nothing was drawn (probability 1). */
  readonly from?: readonly TokenDistribution[] | undefined;
}

/** Guesses the tokens that follow a text. */
export interface Proposer extends Disposable {
  /** By level, the chance that its first token is right, as long as nothing is measured; a higher level is surer. */
  readonly priors: readonly number[];
  /** Whether proposing costs nothing, so that it is also done to see what would have been right. */
  readonly isFree?: boolean;
  /** Whether it knew nothing at the last call of `level`, and may be sure behind one more token. Absent: no. */
  readonly isClose?: boolean;
  /**
   * How sure it is of what follows: an index of `priors`; −1 where it knows nothing, which has to be found out at once.
   *
   * @param tokens The text so far, longer than at the last call, or equal. Nothing before its end has changed.
   */
  level(tokens: readonly number[]): number;
  /**
   * What follows, as far as it knows.
   *
   * @param tokens The text of the last call of `level`.
   * @param most Most tokens, at least 1.
   */
  propose(tokens: readonly number[], most: number): Proposal | Promise<Proposal>;
  /** The text at its end, of which the first `promptLength` tokens were given. */
  finish?(tokens: readonly number[], promptLength: number): void;
}

/** Nothing is proposed. */
export const NOTHING = -1;

const MATCH_LIMITS = [1, 2, 3, 7, 15, 31];

/** Chances of guesses that continue an earlier place of a text, by {@linkcode matchLevel} (bench/results/speculation.md). */
export const MATCH_PRIORS: readonly number[] = [0.2, 0.35, 0.45, 0.6, 0.8, 0.9, 0.96];

/** Level of a guess for which the last `length` tokens stood before it elsewhere, too. */
export function matchLevel(length: number): number {
  if (length === 0) return NOTHING;
  const level = MATCH_LIMITS.findIndex((limit) => length <= limit);
  return level < 0 ? MATCH_LIMITS.length : level;
}
