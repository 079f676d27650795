// Limits on what a template may cost. Templates come with model files, so they are hostile input: a
// loop in a loop in a loop over `range`, or a text doubled thirty times, would hang or fill memory.
// Everything that loops or builds pays here first; 1 unit is one step or one character.

import { TemplateFailure } from "./failure.ts";

/** What is left to spend. */
export interface Budget {
  /** Pays for steps and characters. */
  spend(units: number): void;
  /** Enters a call; too many inside each other are refused. */
  enter(): void;
  /** Leaves a call. */
  leave(): void;
}

const MAX_DEPTH = 100;

/** Starts with so many units. */
export function createBudget(units: number): Budget {
  let left = units;
  let depth = 0;
  return {
    spend(cost) {
      left -= cost;
      if (left < 0) {
        throw new TemplateFailure(`the template takes more than ${units} steps and characters`, {
          isLimit: true,
        });
      }
    },
    enter() {
      if (++depth > MAX_DEPTH) {
        throw new TemplateFailure(`calls nest deeper than ${MAX_DEPTH}`, { isLimit: true });
      }
    },
    leave() {
      depth--;
    },
  };
}
