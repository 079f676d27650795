// The check that every backend makes before a step: a binding for each symbol, within the limits that
// memory was planned for. Anything else would write outside the arena.

import type { DimEnv } from "../graph/dim.ts";
import type { Plan } from "./plan.ts";

/**
 * Checks the bindings of a run.
 *
 * @throws {RangeError} If one is missing, unknown, no integer, negative or above its limit.
 */
export function checkBindings({ graph, limits }: Plan, bindings: DimEnv): void {
  for (const [name, limit] of Object.entries(limits)) {
    const value = bindings[name];
    if (value === undefined || !Number.isInteger(value) || value < 0 || value > limit) {
      throw new RangeError(
        `Cannot run ${graph.name} with ${name} = ${value}: must be an integer in 0..${limit}`,
      );
    }
  }
  for (const name of Object.keys(bindings)) {
    if (!Object.hasOwn(limits, name)) {
      throw new RangeError(`Cannot run ${graph.name} with ${name}: it has no such dim`);
    }
  }
}
