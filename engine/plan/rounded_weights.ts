// Which weights are rounded while they are loaded: those that a `matmul` says so of. The pass that makes such
// nodes sees to it that nothing else reads them.

import type { Node } from "../graph/graph.ts";

/** Ids of the values of rounded weights. */
export function roundedWeights(nodes: readonly Node[]): ReadonlySet<number> {
  return new Set(
    nodes.filter(({ op, attributes }) => op === "matmul" && attributes.rounded).map(({ inputs }) =>
      inputs[1]!.id
    ),
  );
}
