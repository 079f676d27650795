// Proposals that are not checked: what the answer goes on with tells whether they would have been right, for nothing. One
// is watched at a time, from where it was made to its first wrong token.

import type { Controller } from "./controller.ts";
import type { Proposer } from "./proposer.ts";

/** Most tokens of a proposal that are watched. */
const MOST = 15;

/** The proposal at hand. */
export interface Unchecked {
  /**
   * Watches what is proposed behind the tokens, where nothing is watched already.
   *
   * @param level The proposer's for them, which it was asked for last.
   */
  watch(tokens: readonly number[], level: number): void;
  /** Takes in a token that was taken. */
  take(token: number): void;
}

/** Watches a proposer that is free. */
export function createUnchecked(proposer: Proposer, controller: Controller): Unchecked {
  const watched = new Int32Array(MOST);
  let level = 0, count = 0, right = 0;

  function end(isRefused: boolean): void {
    controller.see({ level, accepted: right, isRefused });
    count = 0;
  }

  return {
    watch(tokens, newLevel) {
      if (count > 0 || newLevel < 0) return;
      const found = proposer.propose(tokens, MOST);
      if (found instanceof Promise || found.count === 0) return;
      level = newLevel;
      count = found.count;
      for (let i = 0; i < count; i++) watched[i] = found.tokens[i]!;
      right = 0;
    },
    take(token) {
      if (count === 0) return;
      if (watched[right] !== token) end(true);
      else if (++right === count) end(false);
    },
  };
}
