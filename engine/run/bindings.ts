// The check that every backend makes before a step: a binding for each symbol, within the limits that
// memory was planned for, and no size below 0. Anything else would write outside the arena.

import {
  boundsOf,
  compile,
  type CompiledDim,
  type Dim,
  type DimEnv,
  formatDim,
} from "../graph/dim/mod.ts";
import type { Plan } from "../plan/plan.ts";

/**
 * Checks the bindings of a run.
 *
 * @throws {RangeError} If one is missing, unknown, no integer, negative or above its limit, or makes a size negative.
 */
export function checkBindings(plan: Plan, bindings: DimEnv): void {
  const { graph, limits } = plan;
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
  for (const { place, size, text } of signedSizes(plan)) {
    const value = size(bindings);
    if (value >= 0) continue;
    const given = Object.entries(bindings).map(([name, value]) => `${name} = ${value}`).join(", ");
    throw new RangeError(
      `Cannot run ${graph.name} with ${given}: ${place} would have a dim ${text} of ${value}`,
    );
  }
}

/** Whether no size is negative. */
export function fitsSizes(plan: Plan, bindings: DimEnv): boolean {
  return signedSizes(plan).every(({ size }) => size(bindings) >= 0);
}

/** A size that is not known to be at least 0. */
interface SignedSize {
  /** The node that makes something of that size. */
  readonly place: string;
  readonly size: CompiledDim;
  readonly text: string;
}

const known = new WeakMap<Plan, readonly SignedSize[]>();

function signedSizes(plan: Plan): readonly SignedSize[] {
  let found = known.get(plan);
  if (!found) known.set(plan, found = findSignedSizes(plan));
  return found;
}

function findSignedSizes({ graph }: Plan): SignedSize[] {
  const sizes = new Map<string, SignedSize>();
  // Most nodes have the very dims of others.
  const seen = new Set<Dim>();
  for (const { name, outputs } of graph.nodes) {
    for (const dim of outputs.flatMap(({ shape }) => shape)) {
      if (typeof dim === "number" || seen.has(dim)) continue;
      seen.add(dim);
      if (boundsOf(dim).min >= 0) continue;
      const text = formatDim(dim);
      if (!sizes.has(text)) sizes.set(text, { place: name, size: compile(dim), text });
    }
  }
  return [...sizes.values()];
}
