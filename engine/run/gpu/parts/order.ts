// Which nodes of a graph the GPU and the host compute together. A greedy order: whatever is ready at one home
// is taken until nothing more is, then the other home has its turn; so there are as few parts as in any
// order that never waits. Views compute nothing and stay where their data is.

import type { Graph, Node } from "../../../graph/graph.ts";
import { getOp } from "../../../ops/mod.ts";

/** Where a node is computed. */
export type Home = "gpu" | "host";

/** Nodes that are computed at one place, one behind the other. */
export interface Part {
  readonly home: Home;
  readonly nodes: readonly Node[];
}

/** Cuts a graph into parts, in an order of execution. */
export function partsOf(graph: Graph, homeOf: (node: Node) => Home): Part[] {
  const homes = nodeHomes(graph, homeOf);
  const waiting = new Set(graph.nodes);
  const made = new Set<number>();
  const produced = new Set(graph.nodes.flatMap(({ outputs }) => outputs.map(({ id }) => id)));
  const isReady = ({ inputs }: Node): boolean =>
    inputs.every((value) => !value || made.has(value.id) || !produced.has(value.id));
  const parts: Part[] = [];
  let home: Home = "host";
  while (waiting.size > 0) {
    const nodes: Node[] = [];
    // Nodes stand in an order of execution: one walk takes all that is ready.
    for (const node of waiting) {
      if (homes.get(node) !== home || !isReady(node)) continue;
      waiting.delete(node);
      nodes.push(node);
      for (const { id } of node.outputs) made.add(id);
    }
    if (nodes.length > 0) parts.push({ home, nodes });
    home = home === "gpu" ? "host" : "gpu";
  }
  return parts;
}

function nodeHomes({ nodes }: Graph, homeOf: (node: Node) => Home): Map<Node, Home> {
  const homes = new Map<Node, Home>();
  const makers = new Map<number, Node>();
  const isView = ({ op }: Node) => getOp(op).view === true;
  for (const node of nodes) {
    for (const { id } of node.outputs) makers.set(id, node);
    if (!isView(node)) homes.set(node, homeOf(node));
  }
  for (const node of nodes) {
    if (!isView(node)) continue;
    const maker = makers.get(node.inputs[0]?.id ?? -1);
    homes.set(node, maker && homes.get(maker) || homeOfReaders(node, nodes, homes));
  }
  return homes;
}

/** Of a view of what is given: the home of its first reader that computes. */
function homeOfReaders(
  { outputs }: Node,
  nodes: readonly Node[],
  homes: ReadonlyMap<Node, Home>,
): Home {
  const reader = nodes.find((node) => node.inputs.includes(outputs[0]) && homes.has(node));
  return reader ? homes.get(reader)! : "host";
}
