// XTC, exclude top choices (p-e-w, text-generation-webui PR 6335): with the given chance, of all tokens
// that are at least as probable as the threshold only the least probable one stays. Takes one random
// number for each token, whether or not it then excludes any, so that a seed's sequence keeps its place.

import { type Candidates, distanceOfProbability, maxLogit, orderTop } from "../candidates.ts";
import { defineStep, type SamplingStep, share } from "../step.ts";

interface XtcParameters {
  probability: number;
  threshold: number;
}

/** Excludes the top choices now and then. */
export const xtc: SamplingStep = defineStep<XtcParameters>({
  name: "xtc",
  rules: {
    probability: share(0.5, { aliases: ["xtc_probability"], options: ["xtcProbability"] }),
    threshold: share(0.1, { aliases: ["xtc_threshold"], options: ["xtcThreshold"] }),
  },
  // Two tokens cannot both have more than half.
  neutral: { probability: 0 },
  isOff: ({ probability, threshold }) => probability === 0 || threshold > 0.5,
  apply(candidates, { probability, threshold }, context) {
    if (context.coin() >= probability) return;
    const excluded = topChoices(candidates, threshold) - 1;
    if (excluded < 1) return;
    candidates.ids.copyWithin(0, excluded, candidates.size);
    candidates.logits.copyWithin(0, excluded, candidates.size);
    candidates.size -= excluded;
    candidates.sorted -= excluded;
    candidates.max = NaN;
    candidates.mass = NaN;
    candidates.dense = false;
  },
});

// How many tokens that are not excluded reach the threshold; these are then in order. No more than 1 / threshold can.
function topChoices(candidates: Candidates, threshold: number): number {
  const limit = distanceOfProbability(candidates, threshold), max = maxLogit(candidates);
  const most = Math.min(candidates.size, Math.floor(1 / threshold));
  orderTop(candidates, most);
  const { logits } = candidates;
  let count = 0;
  while (count < most && logits[count]! - max >= limit && logits[count]! > -Infinity) count++;
  return count;
}
