// Mirostat v2 (Basu et al. 2021, algorithm 2): drops tokens whose surprise -log2 p exceeds μ (the best one
// stays), draws from the rest renormalised, and moves μ against the difference between the drawn token's
// surprise (after renormalising) and the target τ. μ starts at 2τ.

import { distanceOfProbability, keepBest, keepWithin } from "../candidates.ts";
import { defineStep, number, type SamplingStep, type StepContext } from "../step.ts";

interface MirostatParameters {
  tau: number;
  eta: number;
}

/** Target surprise in bits and learning rate, as v1 and v2 have them. */
export const MIROSTAT_RULES = {
  tau: number(5, { min: 0, aliases: ["mirostat_tau"], options: ["mirostatTau"] }),
  eta: number(0.1, { min: 0, aliases: ["mirostat_eta"], options: ["mirostatEta"] }),
};

/** The option that says which mirostat it is. */
export const MIROSTAT_VERSION = { option: "mirostat", help: "mirostat version" } as const;

/** Current surprise limit in bits. */
export function surpriseLimit(tau: number, context: StepContext): number {
  return Number.isNaN(context.mu) ? 2 * tau : context.mu;
}

/** Moves the limit after a token of this probability was drawn. */
export function moveLimit(
  probability: number,
  { tau, eta, context }: MirostatParameters & { readonly context: StepContext },
): void {
  context.mu = surpriseLimit(tau, context) - eta * (-Math.log2(probability) - tau);
}

/** Keeps the surprise of the text near a target by a moving limit. */
export const mirostat: SamplingStep = defineStep<MirostatParameters>({
  name: "mirostat",
  aliases: ["mirostat_v2"],
  isDraw: true,
  version: { ...MIROSTAT_VERSION, number: 2 },
  rules: MIROSTAT_RULES,
  apply(candidates, { tau }, context) {
    const distance = distanceOfProbability(candidates, 2 ** -surpriseLimit(tau, context));
    // One token stays where none is as little surprising, also of equals.
    if (distance > 0) keepBest(candidates, 1);
    else keepWithin(candidates, { distance });
  },
  accept: (probability, parameters, context) => moveLimit(probability, { ...parameters, context }),
});
