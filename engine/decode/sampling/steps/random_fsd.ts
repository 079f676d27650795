// Random FSD: the first tokens of an answer are, by a coin, drawn from a nucleus or taken by FSD; after
// them every token is FSD's. It gives FSD, which never draws, several answers to a prompt.

import { countReaching, keepBest } from "../candidates.ts";
import { defineStep, number, type SamplingStep } from "../step.ts";
import { applyFsd, FSD_RULES, type FsdParameters } from "./fsd.ts";

interface RandomFsdParameters extends FsdParameters {
  top_p: number;
  max_k: number;
  random_tokens: number;
  random_probability: number;
}

/** FSD with a random beginning. */
export const randomFsd: SamplingStep = defineStep<RandomFsdParameters>({
  name: "random_fsd",
  isDraw: true,
  rules: {
    ...FSD_RULES,
    top_p: number({ default: 0.93, min: 0, max: 1 }),
    max_k: number({ default: 8, min: 1, integer: true }),
    random_tokens: number({ default: 10, min: 0, integer: true }),
    random_probability: number({ default: 0.5, min: 0, max: 1 }),
  },
  apply(candidates, parameters, context) {
    const generated = context.history.length - context.history.promptLength;
    const isRandom = generated < parameters.random_tokens &&
      context.coin() < parameters.random_probability;
    if (!isRandom) return applyFsd(candidates, parameters, context);
    const nucleus = countReaching(candidates, parameters.top_p);
    keepBest(candidates, Math.min(parameters.max_k, nucleus));
  },
});
