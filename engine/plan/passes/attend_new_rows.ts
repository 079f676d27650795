// attend_new_rows: attention reads a cache where it lies and the new rows where they were made, instead of a copy
// of both (spec TL-12). What is left of the copy goes with dead_code, unless the graph gives it out:
//   attention(q, concat(K, k), concat(V, v))            →  attention(q, K, V, …, k, v), planes of heads or rows
//   attention(q, append_rows(k, K), append_rows(v, V))  →  the same, new rows behind the valid ones

import { type Dim, equal, mul } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { WHOLE } from "./match.ts";
import { defineReplacement, type NodeDraft, type Pass } from "./pass.ts";

/** Takes copies of caches out of the way of attention. */
export const attendNewRows: Pass = defineReplacement({
  name: "attend_new_rows",
  reads: {
    attention: WHOLE,
    concat: ["axis"],
    reshape: ["shape"],
    append_rows: ["heads", "capacity"],
  },
  match(node, { made }, { hasKernel, takes }) {
    const appended = node.op === "attention" ? match(node, made) : undefined;
    // Where rows are appended on the host, what attends to them is there too, and no cache crosses.
    const isNear = appended?.newRows === "behind_valid" && !hasKernel("append_rows");
    return appended && (isNear || takes(drafted(node, appended))) ? appended : undefined;
  },
  replace({ node, inputs, op, moved }, { k, v, newRows }) {
    const [q, , , mask, counts, sinks] = inputs;
    // Rows of heads are given as one row, as they lie.
    const heads = (value: Value, { inRows }: Cache): Value => {
      if (!inRows) return moved(value);
      const [, , count, width] = value.shape as [Dim, Dim, Dim, Dim];
      const shape = [value.shape[1 - inRows.axis]!, value.shape[inRows.axis]!, mul(count, width)];
      return op("reshape", [moved(value)], { shape }, `${value.name}.rows`)[0]!;
    };
    const values = [q, heads(k.past, k), heads(v.past, v), mask, counts, sinks];
    const attributes = { ...node.attributes, new_rows: newRows };
    return op(node.op, [...values, heads(k.rows, k), heads(v.rows, v)], attributes, node.name);
  },
});

interface Cache {
  readonly past: Value;
  readonly rows: Value;
  /** [B, T, H, D], or [T, 1, H, D], instead of [B, H, T, D]: the axis of T. */
  readonly inRows: { readonly axis: number } | undefined;
}

/** The node that is made; what becomes rows lies as it did. */
function drafted(node: Node, { k, v, newRows }: Appended): NodeDraft {
  const [q, , , mask, counts, sinks] = node.inputs;
  const inputs = [q, k.past, v.past, mask, counts, sinks, k.rows, v.rows];
  return { ...node, inputs, attributes: { ...node.attributes, new_rows: newRows } };
}

interface Appended {
  readonly k: Cache;
  readonly v: Cache;
  readonly newRows: "behind_all" | "behind_valid";
}

function match(node: Node, made: ReadonlyMap<Value, Node>): Appended | undefined {
  const { inputs: [, keys, values, , counts, , newK], attributes } = node;
  if (newK || attributes.q_heads === 0 || attributes.scores !== "none") return undefined;
  const before = concatenated(keys!, made), after = concatenated(values!, made);
  if (before && after && equal(newRowsOf(before), newRowsOf(after))) {
    return { k: before, v: after, newRows: "behind_all" };
  }
  const k = made.get(keys!), v = made.get(values!);
  if (!k || !v) return undefined;
  const first = appendedRows(k, counts, attributes.kv_heads);
  const second = appendedRows(v, counts, attributes.kv_heads);
  return first && second ? { k: first, v: second, newRows: "behind_valid" } : undefined;
}

function newRowsOf({ rows, inRows }: Cache): Dim {
  return rows.shape[inRows?.axis ?? 2]!;
}

/** Heads that are two values, one behind the other. */
function concatenated(value: Value, made: ReadonlyMap<Value, Node>): Cache | undefined {
  const maker = made.get(value), isJoined = value.shape.length === 3;
  const node = isJoined && maker?.op === "reshape" ? made.get(maker.inputs[0]!) : maker;
  const [past, rows] = node?.inputs ?? [];
  if (node?.op !== "concat" || node.inputs.length !== 2 || !past || !rows) return undefined;
  if (past.shape.length !== 4) return undefined;
  const axis = axisOf(node.attributes.axis as number, 4);
  if (!isJoined) return axis === 2 ? { past, rows, inRows: undefined } : undefined;
  const isInRows = (axis === 1 || (axis === 0 && past.shape[1] === 1)) &&
    equal(value.shape[0]!, past.shape[1 - axis]!) &&
    equal(value.shape[1]!, node.outputs[0]!.shape[axis]!);
  return isInRows ? { past, rows, inRows: { axis } } : undefined;
}

function appendedRows(
  { op, inputs: [rows, past, given], attributes }: Node,
  counts: Value | undefined,
  heads: unknown,
): Cache | undefined {
  if (op !== "append_rows" || !rows || !past || given !== counts) return undefined;
  return attributes.heads === heads ? { past, rows, inRows: undefined } : undefined;
}
