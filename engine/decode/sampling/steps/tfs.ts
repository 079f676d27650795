// Tail-free sampling (Phénix & Egan 2019): weighs the best tokens by the curvature of the sorted
// probabilities, |p[i] - 2 p[i+1] + p[i+2]| normalised, and keeps them while the sum of weights is at
// most z; at least one. Flat distributions (weights that sum below 1e-6) are weighed evenly. Fewer than
// three tokens have no curvature and all stay. The curvature of the tail needs all candidates in order,
// so over a whole vocabulary this is the slowest filter.

import { keepBest, orderTop, probabilityAt } from "../candidates.ts";
import { defineStep, type SamplingStep, share } from "../step.ts";

const FLAT = 1e-6;

/** Cuts the tail where the probabilities have flattened. */
export const tfs: SamplingStep = defineStep<{ z: number }>({
  name: "tfs",
  aliases: ["tfs_z", "tfsZ", "tail_free"],
  keepsBest: true,
  rules: {
    z: share(0.95, { aliases: ["tfs_z", "tfs"], options: ["tfsZ"] }),
  },
  neutral: { z: 1 },
  isOff: ({ z }) => z === 1,
  apply(candidates, { z }, context) {
    const { size } = candidates;
    if (size < 3) return;
    orderTop(candidates, size);
    const weights = context.doubles(size);
    for (let i = 0; i < size; i++) weights[i] = probabilityAt(candidates, i);
    let total = 0;
    for (let i = 0; i < size - 2; i++) {
      weights[i] = Math.abs(weights[i]! - 2 * weights[i + 1]! + weights[i + 2]!);
      total += weights[i]!;
    }
    const isFlat = total < FLAT;
    let sum = 0;
    let kept = 0;
    while (kept < size - 2) {
      sum += isFlat ? 1 / (size - 2) : weights[kept]! / total;
      if (sum > z) return keepBest(candidates, kept);
      kept++;
    }
  },
});
