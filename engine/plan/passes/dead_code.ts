// dead_code: drops nodes that neither reach an output of the graph nor change a state.

import type { Value } from "../../graph/graph.ts";
import { changesState } from "../../ops/mod.ts";
import type { Pass } from "./pass.ts";

/** Drops nodes without effect. */
export const deadCode: Pass = {
  name: "dead_code",
  reads: "everything",
  run(graph) {
    const needed = new Set<Value>(graph.outputs);
    const kept = graph.nodes.toReversed().filter((node) => {
      if (!changesState(node) && !node.outputs.some((value) => needed.has(value))) return false;
      for (const value of node.inputs) if (value) needed.add(value);
      return true;
    });
    if (kept.length === graph.nodes.length) return graph;
    return Object.freeze({ ...graph, nodes: Object.freeze(kept.toReversed()) });
  },
};
