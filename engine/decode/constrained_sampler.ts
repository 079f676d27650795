// A sampler that takes only what a grammar allows. What is not allowed has a logit of -Infinity before any step of the
// chain, so the distribution is that of the allowed tokens. The best token, and the best few that a device found, need
// no mask where the grammar allows them: then nothing else would have been taken.

import type { Constraint } from "../text/grammar/constraint.ts";
import type { TokenHistory } from "./sampling/history.ts";
import type { Sampler, SamplerState, TokenDistribution } from "./sampling/sampler.ts";

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
}

/** Binds a sampler, which nobody else may use any more. */
export function constrainSampler(sampler: Sampler, constraint: Constraint): ConstrainedSampler {
  let masked = new Float32Array(0);

  // The logits of what is allowed.
  function allowed(logits: Float32Array): Float32Array {
    if (constraint.isFree) return logits;
    if (masked.length !== logits.length) masked = new Float32Array(logits.length);
    masked.fill(-Infinity);
    const mask = constraint.mask();
    for (let word = 0; word < mask.length; word++) {
      for (let bits = mask[word]!; bits !== 0; bits &= bits - 1) {
        const id = 32 * word + 31 - Math.clz32(bits & -bits);
        masked[id] = logits[id]!;
      }
    }
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
    bestNeeded: sampler.bestNeeded,
    prepare() {
      // The best token is tried first; a mask is seldom needed then.
      if (!sampler.isGreedy && !constraint.isComplete && !constraint.isFree) constraint.mask();
    },
    sample(logits, history) {
      if (sampler.isGreedy) {
        const id = sampler.sample(logits, history);
        if (constraint.allows(id)) return taken(id);
      }
      return taken(sampler.sample(allowed(logits), history));
    },
    sampleBest(best, history) {
      const count = Math.min(best.count, sampler.bestNeeded);
      for (let i = 0; i < count; i++) if (!constraint.allows(best.ids[i]!)) return undefined;
      const id = sampler.sampleBest(best, history);
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
