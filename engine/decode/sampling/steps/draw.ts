// Draw: take a token by its probability among the candidates. The chain's runner draws after the last
// step in any case; this row exists so that the end of a chain can be written down.

import { defineStep, type SamplingStep } from "../step.ts";

/** Ends a chain with a draw by probability. */
export const draw: SamplingStep = defineStep<Record<never, never>>({
  name: "draw",
  aliases: ["dist", "sample"],
  isDraw: true,
  rules: {},
  apply() {},
});
