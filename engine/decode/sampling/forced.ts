// A sampler whose first tokens are known already: those of an answer that was begun elsewhere and is to go on here. It
// draws as ever and lets the draw go, so that behind them its random numbers and its state are those of the sampler
// that gave them. Taking what was given instead of trusting the seed alone matters where sums are ordered otherwise
// (another machine, other rows in the same step): one near tie, and the answer would not be the one that was begun.

import type { Sampler } from "./sampler.ts";

/**
 * Checks ids that are to be forced.
 *
 * @throws {RangeError} If one is no token of the model.
 */
export function checkForced(forced: readonly number[], vocabSize: number): void {
  const isList = Array.isArray(forced) &&
    forced.every((id) => Number.isInteger(id) && id >= 0 && id < vocabSize);
  if (isList) return;
  throw new RangeError(
    `Cannot use forced: it is a list of token ids from 0 to ${vocabSize - 1}`,
  );
}

/** Makes a sampler, which nobody else may use any more, begin with given tokens. */
export function forceTokens(sampler: Sampler, forced: readonly number[]): Sampler {
  if (forced.length === 0) return sampler;
  let taken = 0;
  const known = (drawn: number): number => taken < forced.length ? forced[taken++]! : drawn;
  return {
    ...sampler,
    sample: (logits, history) => known(sampler.sample(logits, history)),
    sampleBest(best, history) {
      const drawn = sampler.sampleBest(best, history);
      return drawn === undefined ? undefined : known(drawn);
    },
  };
}
