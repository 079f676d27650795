// Top-p, nucleus sampling (Holtzman et al. 2019): keeps the smallest set of best tokens whose
// probabilities sum to at least p, but no fewer than min_k and no more than max_k (0: no limit).

import { countReaching, keepBest } from "../candidates.ts";
import { count, defineStep, type SamplingStep, share } from "../step.ts";

interface TopPParameters {
  top_p: number;
  min_k: number;
  max_k: number;
}

/** Keeps the nucleus of probability p. */
export const topP: SamplingStep = defineStep<TopPParameters>({
  name: "top_p",
  aliases: ["topP", "std", "auto"],
  keepsBest: true,
  rules: {
    top_p: share(0.9, {
      aliases: ["p"],
      options: ["topP"],
      flag: "only the best tokens up to this probability",
    }),
    min_k: count(1, { aliases: ["min_keep"] }),
    max_k: count(8),
  },
  neutral: { top_p: 1, max_k: 0 },
  isOff: ({ top_p, max_k }) => top_p === 1 && max_k === 0,
  apply(candidates, { top_p, min_k, max_k }) {
    const nucleus = top_p === 1 ? candidates.size : countReaching(candidates, top_p);
    keepBest(candidates, Math.min(max_k === 0 ? Infinity : max_k, Math.max(min_k, nucleus)));
  },
});
