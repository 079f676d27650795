// Order and waves. A wave holds nodes that do not depend on each other, so a backend needs a barrier
// only between waves. Each node starts in the earliest possible wave, which puts q, k and v together and
// gate and up together; then nodes sink towards their first use as long as that keeps none of their
// inputs alive longer. So a mask or a rope table, which depends on inputs only, is not computed waves
// before it is needed. At last nodes that only take other nodes' rows join them (chains.ts).

import type { Graph, Node, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { joinChains, type Places } from "./chains.ts";
import type { PlanStep } from "./plan.ts";

/**
 * Cuts a graph into waves. Views are not among the steps.
 *
 * @throws {TypeError} If the reads and in-place changes of a state contradict each other.
 */
export function schedule(graph: Graph, roots: ReadonlyMap<number, Value>): PlanStep[] {
  // Below nodes are numbers, their places in this list: sets of nodes took most of a plan's time.
  const work = graph.nodes.filter((node) => !getOp(node.op).view);
  const { before, makerOf } = dependencies(graph, work);
  const after = reversed(before);
  const { order, wave } = earliestWaves(graph, work, { before, after });
  sink(order, { wave, after, usesOfInputs: usesOf(graph, work, roots) });
  const sorted = order.sort((a, b) => wave[a]! - wave[b]! || a - b);
  return joinChains(work, { order: sorted, wave, before, makerOf });
}

function dependencies(graph: Graph, work: readonly Node[]) {
  // By id of a value; a view is produced where its input is.
  const producer: number[] = [];
  // By id of a version of a state, also when it is read through a view.
  const version: number[] = [], readers: number[][] = [];
  let place = 0;
  for (const node of graph.nodes) {
    if (node !== work[place]) {
      const { id } = node.inputs[0]!, made = producer[id];
      for (const output of node.outputs) {
        if (made !== undefined) producer[output.id] = made;
        version[output.id] = version[id] ?? id;
      }
      continue;
    }
    for (const output of node.outputs) producer[output.id] = place;
    for (const input of node.inputs) if (input) note(readers, version[input.id] ?? input.id, place);
    place++;
  }
  const before = work.map((node, place) => {
    const earlier: number[] = [];
    const add = (other: number) => void (earlier.includes(other) || earlier.push(other));
    for (const input of node.inputs) {
      const made = input && producer[input.id];
      if (made !== undefined) add(made);
    }
    // Whoever reads a version of a state runs before the node that changes it.
    for (const input of Object.values(getOp(node.op).inPlace?.(node.attributes) ?? {})) {
      for (const reader of readers[node.inputs[input]?.id ?? -1] ?? []) {
        if (reader !== place) add(reader);
      }
    }
    return earlier;
  });
  return { before, makerOf: (value: Value) => producer[value.id] };
}

/** Adds a place to a list of rising ones, once. */
function note(lists: number[][], id: number, place: number): void {
  const list = lists[id];
  if (!list) lists[id] = [place];
  else if (list.at(-1) !== place) list.push(place);
}

function earliestWaves(
  graph: Graph,
  work: readonly Node[],
  { before, after }: { readonly before: Places; readonly after: Places },
) {
  const missing = before.map(({ length }) => length);
  const wave: number[] = new Array(work.length).fill(-1), order: number[] = [];
  let ready = [...work.keys()].filter((place) => missing[place] === 0);
  for (let level = 0; ready.length > 0; level++) {
    const next: number[] = [];
    for (const place of ready) {
      wave[place] = level;
      order.push(place);
      for (const dependent of after[place]!) if (--missing[dependent]! === 0) next.push(dependent);
    }
    ready = next;
  }
  if (order.length === work.length) return { order, wave };
  const stuck = work[wave.indexOf(-1)]!;
  throw new TypeError(
    `Cannot order graph ${graph.name}: ${stuck.name} waits for itself through a state`,
  );
}

function reversed(before: Places): Places {
  const after: number[][] = before.map(() => []);
  before.forEach((earlier, place) => earlier.forEach((other) => after[other]!.push(place)));
  return after;
}

// The nodes that keep each input of a node alive; none for memory that is not in the arena.
function usesOf(graph: Graph, work: readonly Node[], roots: ReadonlyMap<number, Value>) {
  const users: number[][] = [];
  work.forEach(({ inputs }, place) => {
    for (const input of inputs) {
      const root = input && (roots.get(input.id) ?? input);
      if (root?.role === "activation") note(users, root.id, place);
    }
  });
  for (const value of graph.outputs) delete users[(roots.get(value.id) ?? value).id];
  return (place: number) =>
    work[place]!.inputs.map((input) => input && users[(roots.get(input.id) ?? input).id]);
}

function sink(
  order: readonly number[],
  { wave, after, usesOfInputs }: {
    readonly wave: number[];
    readonly after: Places;
    readonly usesOfInputs: (place: number) => (readonly number[] | undefined)[];
  },
): void {
  for (const place of order.toReversed()) {
    const dependents = after[place]!;
    if (dependents.length === 0) continue;
    const latest = dependents.reduce((least, other) => Math.min(least, wave[other]!), Infinity) - 1;
    const free = usesOfInputs(place).every((users) =>
      users === undefined || users.some((user) => wave[user]! >= latest)
    );
    if (free) wave[place] = latest;
  }
}
