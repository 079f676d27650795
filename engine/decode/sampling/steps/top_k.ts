// Top-k (Fan et al. 2018): keeps the k best tokens, equals by lower id. 0 is off.

import { keepBest } from "../candidates.ts";
import { count, defineStep, type SamplingStep } from "../step.ts";

/** Keeps the k best tokens. */
export const topK: SamplingStep = defineStep<{ k: number }>({
  name: "top_k",
  aliases: ["topK"],
  keepsBest: true,
  rules: {
    k: count(8, {
      aliases: ["max_k", "top_k"],
      options: ["topK"],
      flag: "only the N most probable tokens",
    }),
  },
  neutral: { k: 0 },
  isOff: ({ k }) => k === 0,
  apply(candidates, { k }) {
    keepBest(candidates, k);
  },
});
