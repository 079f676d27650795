// Min-p (Nguyen et al. 2024): keeps the tokens that are at least p times as probable as the best one.
// That is a distance between logits, so no exponential is needed.

import { keepWithin } from "../candidates.ts";
import { count, defineStep, type SamplingStep, share } from "../step.ts";

interface MinPParameters {
  min_p: number;
  min_k: number;
}

/** Keeps tokens of at least p times the greatest probability. */
export const minP: SamplingStep = defineStep<MinPParameters>({
  name: "min_p",
  aliases: ["minP"],
  keepsBest: true,
  rules: {
    min_p: share(0.05, {
      aliases: ["p", "alpha"],
      options: ["minP"],
      flag: "only tokens of this share of the best one's",
    }),
    min_k: count(1, { aliases: ["min_keep"] }),
  },
  neutral: { min_p: 0 },
  isOff: ({ min_p }) => min_p === 0,
  apply(candidates, { min_p, min_k }) {
    keepWithin(candidates, { distance: Math.log(min_p), minimum: min_k });
  },
});
