// Which values share memory by definition: views (reshape) and in-place results (kv_append) are the
// memory of one of their inputs. Everything that places memory asks for the root of a value here.

import type { Graph, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";

/** By value id, the value whose memory it is; values with their own memory are not listed. */
export function aliasRoots(graph: Graph): ReadonlyMap<number, Value> {
  const roots = new Map<number, Value>();
  for (const node of graph.nodes) {
    const inPlace = getOp(node.op).inPlace?.(node.attributes);
    node.outputs.forEach((output, i) => {
      const source = node.inputs[inPlace?.[i] ?? -1];
      if (source) roots.set(output.id, roots.get(source.id) ?? source);
    });
  }
  return roots;
}
