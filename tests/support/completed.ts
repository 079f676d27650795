// Work that is cut into steps, done without a break.

import type { Steps } from "../../quant/steps.ts";

/** Runs all steps at once. */
export function completed<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
