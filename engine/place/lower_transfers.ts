// What a device computes of a part: transfers are the edges of the part by themselves, and a sum over a group that one
// device has whole is sums of two, which passes then join to what stands around.

import type { Graph, Value } from "../graph/graph.ts";
import { rewrite } from "../plan/passes/rewrite.ts";

/** The graph without `send`, `recv` and `all_reduce`. */
export function lowerTransfers(graph: Graph): Graph {
  return rewrite(graph, ({ node, inputs, op, copy }) => {
    if (node.op === "send" || node.op === "recv") return [inputs[0]!];
    if (node.op !== "all_reduce") return copy();
    const [first, ...others] = inputs as readonly Value[];
    const sum = others.reduce(
      (sum, part, i) => op("binary", [sum, part], { kind: "add" }, `${node.name}.${i + 1}`)[0]!,
      first!,
    );
    return [sum];
  });
}
