// Order and waves. A wave holds nodes that do not depend on each other, so a backend needs a barrier
// only between waves. Each node starts in the earliest possible wave, which puts q, k and v together and
// gate and up together; then nodes sink towards their first use as long as that keeps none of their
// inputs alive longer. So a mask or a rope table, which depends on inputs only, is not computed waves
// before it is needed. At last nodes that only take other nodes' rows join them (chains.ts).

import type { Graph, Node, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { joinChains, type NodeSets } from "./chains.ts";
import type { PlanStep } from "./plan.ts";

/**
 * Cuts a graph into waves. Views are not among the steps.
 *
 * @throws {TypeError} If the reads and in-place changes of a state contradict each other.
 */
export function schedule(graph: Graph, roots: ReadonlyMap<number, Value>): PlanStep[] {
  const work = graph.nodes.filter((node) => !getOp(node.op).view);
  const { before, makerOf } = dependencies(graph, work);
  const { order, wave } = earliestWaves(graph, work, before);
  sink(order, { wave, before, usesOfInputs: usesOf(graph, work, roots) });
  const steps = order
    .map((node) => ({ node, wave: wave.get(node)! }))
    .sort((a, b) => a.wave - b.wave || a.node.id - b.node.id);
  return joinChains(steps, { before, makerOf });
}

function dependencies(graph: Graph, work: readonly Node[]) {
  // A view is produced where its input is.
  const producer = new Map<number, Node>();
  // By id of a version of a state, also when it is read through a view.
  const version = new Map<number, number>();
  const readers = new Map<number, Set<Node>>();
  for (const node of graph.nodes) {
    const op = getOp(node.op);
    for (const output of node.outputs) {
      const source = op.view ? node.inputs[0] : undefined;
      const made = source ? producer.get(source.id) : node;
      if (made) producer.set(output.id, made);
      if (source) version.set(output.id, version.get(source.id) ?? source.id);
    }
    if (op.view) continue;
    for (const input of node.inputs) {
      if (!input) continue;
      const id = version.get(input.id) ?? input.id;
      readers.set(id, (readers.get(id) ?? new Set()).add(node));
    }
  }
  const sets: NodeSets = new Map(work.map((node) => {
    const before = new Set<Node>();
    for (const input of node.inputs) {
      const made = input && producer.get(input.id);
      if (made) before.add(made);
    }
    // Whoever reads a version of a state runs before the node that changes it.
    for (const input of Object.values(getOp(node.op).inPlace?.(node.attributes) ?? {})) {
      for (const reader of readers.get(node.inputs[input]?.id ?? -1) ?? []) {
        if (reader !== node) before.add(reader);
      }
    }
    return [node, before];
  }));
  return { before: sets, makerOf: (value: Value) => producer.get(value.id) };
}

function earliestWaves(graph: Graph, work: readonly Node[], before: NodeSets) {
  const after = reversed(before);
  const missing = new Map(work.map((node) => [node, before.get(node)!.size]));
  const wave = new Map<Node, number>();
  const order: Node[] = [];
  let ready = work.filter((node) => missing.get(node) === 0);
  for (let level = 0; ready.length > 0; level++) {
    const next: Node[] = [];
    for (const node of ready) {
      wave.set(node, level);
      order.push(node);
      for (const dependent of after.get(node) ?? []) {
        const left = missing.get(dependent)! - 1;
        missing.set(dependent, left);
        if (left === 0) next.push(dependent);
      }
    }
    ready = next;
  }
  if (order.length === work.length) return { order, wave };
  const stuck = work.find((node) => !wave.has(node))!;
  throw new TypeError(
    `Cannot order graph ${graph.name}: ${stuck.name} waits for itself through a state`,
  );
}

function reversed(before: NodeSets): Map<Node, Set<Node>> {
  const after = new Map<Node, Set<Node>>();
  for (const [node, earlier] of before) {
    for (const other of earlier) after.set(other, (after.get(other) ?? new Set()).add(node));
  }
  return after;
}

// The nodes that keep each input of a node alive; undefined for memory that is not in the arena.
function usesOf(graph: Graph, work: readonly Node[], roots: ReadonlyMap<number, Value>) {
  const users = new Map<number, Set<Node>>();
  for (const node of work) {
    for (const input of node.inputs) {
      if (!input) continue;
      const root = roots.get(input.id) ?? input;
      if (root.role !== "activation") continue;
      users.set(root.id, (users.get(root.id) ?? new Set()).add(node));
    }
  }
  const kept = new Set(graph.outputs.map((value) => (roots.get(value.id) ?? value).id));
  return (node: Node) =>
    node.inputs.flatMap((input) => {
      const root = input && (roots.get(input.id) ?? input);
      return root && users.has(root.id) && !kept.has(root.id) ? [users.get(root.id)!] : [];
    });
}

function sink(
  order: readonly Node[],
  { wave, before, usesOfInputs }: {
    readonly wave: Map<Node, number>;
    readonly before: NodeSets;
    readonly usesOfInputs: (node: Node) => ReadonlySet<Node>[];
  },
): void {
  const after = reversed(before);
  for (const node of order.toReversed()) {
    const dependents = after.get(node);
    if (!dependents) continue;
    const latest = least(dependents, wave) - 1;
    const free = usesOfInputs(node).every((users) => greatest(users, wave) >= latest);
    if (free) wave.set(node, latest);
  }
}

function least(nodes: Iterable<Node>, wave: ReadonlyMap<Node, number>): number {
  let result = Infinity;
  for (const node of nodes) result = Math.min(result, wave.get(node)!);
  return result;
}

function greatest(nodes: Iterable<Node>, wave: ReadonlyMap<Node, number>): number {
  let result = -1;
  for (const node of nodes) result = Math.max(result, wave.get(node)!);
  return result;
}
