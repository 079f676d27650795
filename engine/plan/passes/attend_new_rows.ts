// attend_new_rows: attention reads a cache where it lies and the new rows where they were made, instead of a copy
// of both (spec TL-12). What is left of the copy goes with dead_code, unless the graph gives it out:
//   attention(q, concat(K, k), concat(V, v))            →  attention(q, K, V, …, k, v)
//   attention(q, append_rows(k, K), append_rows(v, V))  →  the same, new rows behind the valid ones

import { equal } from "../../graph/dim.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { axisOf } from "../../graph/host_numbers.ts";
import type { Pass } from "./pass.ts";
import { producersOf, rewrite } from "./rewrite.ts";

/** Takes copies of caches out of the way of attention. */
export const attendNewRows: Pass = {
  name: "attend_new_rows",
  run(graph) {
    const producers = producersOf(graph);
    const found = new Map<Node, Appended>();
    for (const node of graph.nodes) {
      const appended = node.op === "scaled_attention" ? match(node, producers) : undefined;
      if (appended) found.set(node, appended);
    }
    if (found.size === 0) return graph;
    return rewrite(graph, ({ node, inputs, op, moved, copy }) => {
      const appended = found.get(node);
      if (!appended) return copy();
      const { k, v, newRows } = appended;
      const [q, , , mask, counts, sinks] = inputs;
      const values = [q, moved(k.past), moved(v.past), mask, counts, sinks];
      const attributes = { ...node.attributes, new_rows: newRows };
      return op(node.op, [...values, moved(k.rows), moved(v.rows)], attributes, node.name);
    });
  },
};

interface Cache {
  readonly past: Value;
  readonly rows: Value;
}

interface Appended {
  readonly k: Cache;
  readonly v: Cache;
  readonly newRows: "behind_all" | "behind_valid";
}

function match(node: Node, producers: ReadonlyMap<Value, Node>): Appended | undefined {
  const { inputs: [, keys, values, , counts, , newK], attributes } = node;
  if (newK || attributes.scores !== "none") return undefined;
  const k = producers.get(keys!), v = producers.get(values!);
  if (!k || k.op !== v?.op) return undefined;
  const before = concatenated(k), after = concatenated(v);
  if (before && after && equal(before.rows.shape[2]!, after.rows.shape[2]!)) {
    return { k: before, v: after, newRows: "behind_all" };
  }
  const first = appendedRows(k, counts, attributes.kv_heads);
  const second = appendedRows(v, counts, attributes.kv_heads);
  return first && second ? { k: first, v: second, newRows: "behind_valid" } : undefined;
}

/** [B, H, T, D] of two values along T. */
function concatenated({ op, inputs, attributes }: Node): Cache | undefined {
  const [past, rows] = inputs;
  if (op !== "concat" || inputs.length !== 2 || !past || !rows) return undefined;
  const isCache = past.shape.length === 4 && axisOf(attributes.axis as number, 4) === 2;
  return isCache ? { past, rows } : undefined;
}

function appendedRows(
  { op, inputs: [rows, past, given], attributes }: Node,
  counts: Value | undefined,
  heads: unknown,
): Cache | undefined {
  if (op !== "append_rows" || !rows || !past || given !== counts) return undefined;
  return attributes.heads === heads ? { past, rows } : undefined;
}
