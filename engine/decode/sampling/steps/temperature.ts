// Temperature: divides the logits. 0 leaves the best token alone. With `range` it is dynamic (kalomaze):
// between temperature - range and temperature + range, by the entropy of the candidates relative to the
// greatest possible, raised to `exponent`.

import { type Candidates, entropy, keepBest, maxLogit } from "../candidates.ts";
import { defineStep, number, type SamplingStep } from "../step.ts";

/** Beyond the numbers of float32. */
const MOST = 3.4e38;

interface TemperatureParameters {
  temperature: number;
  range: number;
  exponent: number;
}

/** Divides the logits. */
export const temperature: SamplingStep = defineStep<TemperatureParameters>({
  name: "temperature",
  aliases: ["temp"],
  keepsBest: true,
  rules: {
    temperature: number(1, {
      min: 0,
      aliases: ["temp"],
      options: ["temperature", "temp"],
      flag: "flattens (>1) or sharpens (<1); 0 is greedy",
    }),
    range: number(0, { min: 0, aliases: ["dynatemp_range"], options: ["dynatempRange"] }),
    exponent: number(1, { min: 0, aliases: ["dynatemp_exponent"], options: ["dynatempExponent"] }),
  },
  isOff: (p) => p.temperature === 1 && p.range === 0,
  isGreedy: (p) => p.temperature === 0 && p.range === 0,
  apply(candidates, p) {
    const value = p.range === 0 ? p.temperature : dynamicTemperature(candidates, p);
    if (value === 0) return keepBest(candidates, 1);
    const { logits, size } = candidates;
    const max = maxLogit(candidates);
    // Probabilities are of differences: where quotients would overflow, the best logit becomes 0.
    const shift = Math.abs(max / value) < MOST ? 0 : max;
    for (let i = 0; i < size; i++) logits[i] = (logits[i]! - shift) / value;
    // Order stays, and with it the ordered prefix.
    candidates.max = Math.fround((max - shift) / value);
    candidates.mass = NaN;
  },
});

function dynamicTemperature(candidates: Candidates, p: TemperatureParameters): number {
  if (candidates.size === 1) return 1;
  const low = Math.max(0, p.temperature - p.range);
  const high = p.temperature + p.range;
  const relative = Math.max(0, entropy(candidates) / Math.log(candidates.size));
  return low + (high - low) * Math.min(1, relative) ** p.exponent;
}
