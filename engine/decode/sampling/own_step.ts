// A sampling step of the user's own: a function in the list of `samplers`. It sees the candidates that the steps before
// it left and changes their logits; the steps behind it go on with those. What it must not do is checked, because a
// distribution that is none would only show in the answer.

import { logitsChanged } from "./candidates.ts";
import type { BoundStep } from "./step.ts";

/**
 * What a function in `samplers` gets. The arrays are valid during the call.
 * @category Sampling
 */
export interface OwnCandidates {
  /** Token ids, not to be changed; in no order, unless a step before has sorted them. */
  readonly ids: ArrayLike<number>;
  /** Their logits, to be changed in place; `-Infinity` takes a candidate out. */
  readonly logits: Float32Array;
  /** Tokens so far, prompt first. */
  readonly history: ArrayLike<number>;
  /** Leading tokens of those that are the prompt. */
  readonly promptLength: number;
}

/**
 * A sampling step of one's own: changes the logits of candidates in place.
 *
 * It is called once for each token, in the order of its chain, and has to be done when it returns. What it throws ends the
 * answer with that error. The same logits and history must give the same result, or a seed does not repeat an answer.
 *
 * @throws {RangeError} In `generate`, if it leaves no candidate, or makes a logit NaN or +Infinity.
 * @throws {TypeError} In `generate`, if it returns something, such as a promise.
 *
 * @example
 * ```ts
 * import { createSampler, type SamplingFunction } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const evenOnly: SamplingFunction = ({ ids, logits }) => {
 *   for (let i = 0; i < ids.length; i++) if (ids[i]! % 2 === 1) logits[i] = -Infinity;
 * };
 * const sampler = createSampler({ samplers: ["top_k", evenOnly, "greedy"], topK: 3 });
 * const history = { tokens: [], length: 0, promptLength: 0 };
 * assertEquals(sampler.sample(Float32Array.of(1, 5, 3, 4), history), 2);
 * ```
 * @category Sampling
 */
export type SamplingFunction = (candidates: OwnCandidates) => void;

/** A chain's step that calls a function. */
export function ownStep(own: SamplingFunction): BoundStep {
  const name = own.name || "own";
  const fail = (what: string) => new RangeError(`Sampling step ${name} ${what}`);
  return {
    ...{ name, parameters: {}, isOff: false, isGreedy: false, keepsBest: false },
    ...{ isDraw: false, needsTexts: false, accept() {} },
    apply(candidates, { history }) {
      const { size } = candidates;
      const logits = candidates.logits.subarray(0, size);
      const { tokens, promptLength } = history;
      const ids = candidates.ids.subarray(0, size);
      const result: unknown = own({ ids, logits, history: tokens, promptLength });
      if (result !== undefined) {
        throw new TypeError(`Sampling step ${name} returned something: it changes logits in place`);
      }
      let isLeft = false;
      for (let i = 0; i < size; i++) {
        const logit = logits[i]!;
        if (!(logit < Infinity)) throw fail(`made the logit of token ${ids[i]} ${logit}`);
        if (logit > -Infinity) isLeft = true;
      }
      if (!isLeft) throw fail("left no token: all logits are -Infinity");
      logitsChanged(candidates);
    },
  };
}
