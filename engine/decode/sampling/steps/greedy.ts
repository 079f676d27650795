// Greedy: the best token, the lowest id of equals.

import { keepBest } from "../candidates.ts";
import { defineStep, type SamplingStep } from "../step.ts";

/** Leaves the best token alone. */
export const greedy: SamplingStep = defineStep<Record<never, never>>({
  name: "greedy",
  isDraw: true,
  rules: {},
  isGreedy: () => true,
  apply(candidates) {
    keepBest(candidates, 1);
  },
});
