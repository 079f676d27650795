// From when to when each activation is needed, counted in waves, because nodes of one wave may run at
// the same time: what one reads, another must not overwrite. Views count as uses of their root. Graph
// outputs live to the end, since they are read after the last wave.

import type { Graph, Value } from "../graph/graph.ts";
import type { PlanStep } from "./plan.ts";

/** An activation with its own memory, and its first and last wave, inclusive. */
export interface Lifetime {
  readonly value: Value;
  readonly first: number;
  readonly last: number;
}

/** Lifetimes in order of production. */
export function lifetimes(
  graph: Graph,
  { steps, roots }: {
    readonly steps: readonly PlanStep[];
    readonly roots: ReadonlyMap<number, Value>;
  },
): Lifetime[] {
  const found = new Map<number, { value: Value; first: number; last: number }>();
  const extend = (value: Value | undefined, wave: number) => {
    const lifetime = value && found.get((roots.get(value.id) ?? value).id);
    if (lifetime) lifetime.last = Math.max(lifetime.last, wave);
  };
  for (const { node, wave } of steps) {
    for (const input of node.inputs) extend(input, wave);
    for (const value of node.outputs) {
      if (!roots.has(value.id)) found.set(value.id, { value, first: wave, last: wave });
    }
  }
  const end = steps.at(-1)?.wave ?? 0;
  for (const value of graph.outputs) extend(value, end);
  return [...found.values()];
}
