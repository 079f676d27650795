// Which weights are rounded while they are loaded: those that `matmul_int7` reads. The pass that makes such
// nodes sees to it that nothing else reads them.

import type { Node } from "../graph/graph.ts";

/** Ids of the values of rounded weights. */
export function roundedWeights(nodes: readonly Node[]): ReadonlySet<number> {
  return new Set(
    nodes.filter(({ op }) => op === "matmul_int7").map(({ inputs }) => inputs[1]!.id),
  );
}
