// Top-n-sigma (Tang et al. 2024): keeps the tokens whose logit is within n standard deviations of the
// greatest one. The deviation is that of all candidates with a finite logit. Both sides scale with
// temperature, so the set does not depend on it. Zero or less is off, as in llama.cpp.

import { keepWithin, maxLogit } from "../candidates.ts";
import { defineStep, number, type SamplingStep } from "../step.ts";

/** Keeps logits within n standard deviations of the greatest. */
export const topNSigma: SamplingStep = defineStep<{ n: number }>({
  name: "top_n_sigma",
  aliases: ["topNSigma"],
  keepsBest: true,
  rules: {
    n: number(1, {
      aliases: ["top_n_sigma", "n_sigma"],
      options: ["topNSigma"],
      flag: "only logits within N deviations of the best",
    }),
  },
  neutral: { n: 0 },
  isOff: ({ n }) => n <= 0,
  apply(candidates, { n }) {
    const { logits, size } = candidates;
    const max = maxLogit(candidates);
    let count = 0;
    let sum = 0;
    let squares = 0;
    for (let i = 0; i < size; i++) {
      const difference = logits[i]! - max;
      if (difference === -Infinity) continue;
      count++;
      sum += difference;
      squares += difference * difference;
    }
    const mean = sum / count;
    keepWithin(candidates, {
      distance: -n * Math.sqrt(Math.max(0, squares / count - mean * mean)),
    });
  },
});
