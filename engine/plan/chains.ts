// Puts nodes that work row by row into the wave of the node whose rows they take: a backend may then run them
// as a chain, chunk by chunk, with no barrier between. What belongs to a wave is alive all through it
// (liveness.ts), so no result of a chain lies where another link still reads. Backends that cannot chain run a
// wave in the order of its steps.

import type { Node, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { cutAlike, type Rowwise } from "../ops/row_cut.ts";
import type { PlanStep } from "./plan.ts";

/** By place of a node, the places of others. */
export type Places = readonly (readonly number[])[];

/** The steps of nodes by waves, of which joining leaves fewer; every node still follows what it waits for. */
export function joinChains(
  nodes: readonly Node[],
  { order, wave: old, before, makerOf }: {
    /** Places of the nodes, by wave. */
    readonly order: readonly number[];
    /** Of each node. */
    readonly wave: readonly number[];
    /** What a node waits for: makers of its inputs, and readers of a state that it changes. */
    readonly before: Places;
    readonly makerOf: (value: Value) => number | undefined;
  },
): PlanStep[] {
  const wave = [...old], heads: number[] = [], cuts = nodes.map(rowwiseOf);
  const cutOf = (place: number) => cuts[place];
  for (const place of order) {
    const earlier = before[place]!;
    const last = earlier.reduce((most, other) => Math.max(most, wave[other]!), -1);
    const near = earlier.filter((other) => wave[other] === last), head = heads[near[0] ?? -1];
    // What was put off to keep less alive stays where it is.
    const follows = earlier.some((other) => old[other] === old[place]! - 1) &&
      near.every((other) => heads[other] === head) &&
      takesRowsOf(place, near, { nodes, makerOf, cutOf });
    heads[place] = follows ? head! : place;
    if (follows) wave[place] = last;
  }
  const renumbered = new Map(
    [...new Set(wave)].sort((a, b) => a - b).map((number, index) => [number, index]),
  );
  // Stable: within a wave the order of before, in which nodes follow what they need.
  return order.map((place) => ({ node: nodes[place]!, wave: renumbered.get(wave[place]!)! }))
    .sort((a, b) => a.wave - b.wave);
}

function takesRowsOf(
  place: number,
  near: readonly number[],
  { nodes, makerOf, cutOf }: {
    readonly nodes: readonly Node[];
    readonly makerOf: (value: Value) => number | undefined;
    readonly cutOf: (place: number) => Rowwise | undefined;
  },
): boolean {
  const own = cutOf(place), { op, inputs } = nodes[place]!;
  // Sums of sums take each other's memory instead (reuse_inputs.ts), wave by wave.
  if (!own || near.every((other) => nodes[other]!.op === op)) return false;
  const made = inputs.map((input) => input && makerOf(input));
  return near.every((other) => {
    const cut = cutOf(other);
    return cut !== undefined && cutAlike(cut, own) && made.includes(other) &&
      made.every((maker, index) => maker !== other || own.inputs.includes(index));
  });
}

/** How a node cuts its rows; undefined if it does not work row by row. */
export function rowwiseOf(node: Node): Rowwise | undefined {
  return getOp(node.op).rowwise?.(node);
}
