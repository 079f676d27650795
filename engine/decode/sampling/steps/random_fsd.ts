// Random FSD: the first tokens of an answer are, by a coin, drawn from a nucleus or taken by FSD; after
// them every token is FSD's. It gives FSD, which never draws, several answers to a prompt.

import { countReaching, keepBest } from "../candidates.ts";
import { count, defineStep, number, type SamplingStep, share } from "../step.ts";
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
    top_p: share(0.93),
    max_k: number(8, { min: 1, integer: true }),
    random_tokens: count(10),
    random_probability: share(0.5),
  },
  apply(candidates, parameters, context) {
    const generated = context.history.length - context.history.promptLength;
    const isRandom = generated < parameters.random_tokens &&
      context.coin() < parameters.random_probability;
    if (!isRandom) return applyFsd(candidates, { parameters, context });
    const nucleus = countReaching(candidates, parameters.top_p);
    keepBest(candidates, Math.min(parameters.max_k, nucleus));
  },
});
