// Puts nodes that work row by row into the wave of the node whose rows they take: a backend may then run them
// as a chain, chunk by chunk, with no barrier between. What belongs to a wave is alive all through it
// (liveness.ts), so no result of a chain lies where another link still reads. Backends that cannot chain run a
// wave in the order of its steps.

import type { Node, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { cutAlike, type Rowwise } from "../ops/row_cut.ts";
import type { PlanStep } from "./plan.ts";

/** What a node waits for: makers of its inputs, and readers of a state that it changes. */
export type NodeSets = ReadonlyMap<Node, ReadonlySet<Node>>;

/** Joins steps that are ordered by wave; the number of waves falls, and every node still follows what it waits for. */
export function joinChains(
  steps: readonly PlanStep[],
  { before, makerOf }: {
    readonly before: NodeSets;
    readonly makerOf: (value: Value) => Node | undefined;
  },
): PlanStep[] {
  const old = new Map(steps.map(({ node, wave }) => [node, wave]));
  const wave = new Map(old);
  const heads = new Map<Node, Node>();
  const cuts = new Map(steps.map(({ node }) => [node, rowwiseOf(node)]));
  for (const { node } of steps) {
    const earlier = [...before.get(node)!];
    const last = Math.max(-1, ...earlier.map((other) => wave.get(other)!));
    const near = earlier.filter((other) => wave.get(other) === last);
    // What was put off to keep less alive stays where it is.
    const follows = earlier.some((other) => old.get(other) === old.get(node)! - 1) &&
      near.every((other) => heads.get(other) === heads.get(near[0]!)) &&
      takesRowsOf(node, near, { makerOf, cutOf: (some) => cuts.get(some) });
    heads.set(node, follows ? heads.get(near[0]!)! : node);
    if (follows) wave.set(node, last);
  }
  const used = [...new Set(wave.values())].sort((a, b) => a - b);
  const renumbered = new Map(used.map((number, index) => [number, index]));
  // Stable: within a wave the order of before, in which nodes follow what they need.
  return steps.map(({ node }) => ({ node, wave: renumbered.get(wave.get(node)!)! }))
    .sort((a, b) => a.wave - b.wave);
}

function takesRowsOf(
  node: Node,
  near: readonly Node[],
  { makerOf, cutOf }: {
    readonly makerOf: (value: Value) => Node | undefined;
    readonly cutOf: (node: Node) => Rowwise | undefined;
  },
): boolean {
  const own = cutOf(node);
  // Sums of sums take each other's memory instead (reuse_inputs.ts), wave by wave.
  if (!own || near.every((other) => other.op === node.op)) return false;
  const made = node.inputs.map((input) => input && makerOf(input));
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
