// A sampler that takes only what a grammar allows. What is not allowed has a logit of -Infinity before any step of the
// chain, so the distribution is that of the allowed tokens. Where the chain looks at the best few logits only, those of
// the allowed tokens are picked out, and nothing as long as the vocabulary is written; often a device's best have them
// already, and then no other logits are fetched. What is taken is the same to the bit.

import { MOST_BEST } from "../run/step.ts";
import type { Constraint } from "../text/grammar/constraint.ts";
import { type AllowedBest, createAllowedBest } from "./allowed_best.ts";
import type { TokenHistory } from "./sampling/history.ts";
import type { Sampler, SamplerState, TokenDistribution } from "./sampling/sampler.ts";

/** So many of the best logits are wanted besides those that the chain needs, since some are not allowed. */
const SPARE_BEST = 15;
/** Masks in a row that were searched for, after which the best token is tried first for a while. */
const MOST_SEARCHES = 3, WITHOUT_MASK = 32;

/** State of a sampler, and how many tokens were taken. */
interface ConstrainedState extends SamplerState {
  readonly taken: number;
}

/** A sampler within a grammar; every token that it takes, the constraint takes too. */
export interface ConstrainedSampler extends Sampler {
  /** What it is bound by. */
  readonly constraint: Constraint;
  /** Finds out what may come next, while a device computes. */
  prepare(): void;
  /** The tokens of which the best is taken next, by bit, until it is; undefined: not the best, or of all. */
  allowed(): Uint32Array | undefined;
}

/** Binds a sampler, which nobody else may use any more. */
export function constrainSampler(sampler: Sampler, constraint: Constraint): ConstrainedSampler {
  let masked = new Float32Array(0);
  let searches = 0, without = 0;
  const needed = sampler.bestNeeded;
  const list: AllowedBest | undefined = needed <= MOST_BEST ? createAllowedBest(needed) : undefined;

  const isAllowed = (id: number): boolean => constraint.allows(id);

  // The logits of what is allowed.
  function allowed(logits: Float32Array): Float32Array {
    if (constraint.isFree) return logits;
    if (masked.length !== logits.length) masked = new Float32Array(logits.length);
    maskLogits(masked, logits, constraint.mask());
    return masked;
  }

  function taken(id: number): number {
    constraint.accept(id);
    return id;
  }

  return {
    constraint,
    seed: sampler.seed,
    chain: sampler.chain,
    isGreedy: sampler.isGreedy,
    bestNeeded: list ? Math.min(needed + SPARE_BEST, MOST_BEST) : needed,
    prepare() {
      // The best token is tried first; a mask is seldom needed then.
      if (!sampler.isGreedy && !constraint.isComplete && !constraint.isFree) constraint.mask();
    },
    allowed() {
      if (!sampler.isGreedy || constraint.isComplete || constraint.isFree) return undefined;
      if (without > 0) {
        without--;
        return undefined;
      }
      const mask = constraint.mask();
      searches = constraint.isSearched ? searches + 1 : 0;
      if (searches === MOST_SEARCHES) [searches, without] = [0, WITHOUT_MASK];
      return mask;
    },
    sample(logits, history) {
      if (list && !constraint.isFree) {
        list.pick(logits, constraint.mask());
        const id = sampler.sampleBest(list, history);
        if (id !== undefined) return taken(id);
      }
      return taken(sampler.sample(allowed(logits), history));
    },
    sampleBest(best, history) {
      if (!list) return undefined;
      // One mask costs less than to read dozens of tokens.
      const mask = sampler.isGreedy || constraint.isFree ? undefined : constraint.mask();
      list.filter(best, { isAllowed, mask });
      const id = sampler.sampleBest(list, history);
      return id === undefined ? undefined : taken(id);
    },
    probabilities: (logits: Float32Array, history: TokenHistory): TokenDistribution =>
      sampler.probabilities(allowed(logits), history),
    distribution: (logits: Float32Array, history: TokenHistory): TokenDistribution =>
      sampler.distribution(allowed(logits), history),
    accept(token) {
      sampler.accept(token);
      constraint.accept(token);
    },
    random: () => sampler.random(),
    save: (): ConstrainedState => ({ ...sampler.save(), taken: constraint.length }),
    restore(state) {
      sampler.restore(state);
      constraint.rollback(constraint.length - (state as ConstrainedState).taken);
    },
  };
}

function maskLogits(masked: Float32Array, logits: Float32Array, mask: Uint32Array): void {
  masked.fill(-Infinity);
  for (let word = 0, first = 0; word < mask.length; word++, first += 32) {
    let bits = mask[word]!;
    if (bits === 0xffffffff) {
      for (let id = first; id < first + 32; id++) masked[id] = logits[id]!;
      continue;
    }
    for (; bits !== 0; bits &= bits - 1) {
      const id = first + 31 - Math.clz32(bits & -bits);
      masked[id] = logits[id]!;
    }
  }
}
