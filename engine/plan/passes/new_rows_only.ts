// Results that are an input with new rows behind it (spec TL-12, `Concat(past, new)` or append_rows) become those
// new rows alone: whoever feeds the past has it already. Not in the list of
// passes, because it changes what a graph gives out; the caller is told which results changed.

import { type Dim, exactDiv } from "../../graph/dim/mod.ts";
import type { Graph, Node, Value } from "../../graph/graph.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { copyGraph } from "./copy_graph.ts";
import { matchContext, type Reads } from "./match.ts";

/** The input behind which the new rows of a result stand, and the axis of rows. */
export interface PastOf {
  readonly name: string;
  readonly axis: number;
}

/** A graph that gives out new rows. */
export interface NewRowsGraph {
  readonly graph: Graph;
  /** Names of the results that are new rows now. */
  readonly replaced: ReadonlySet<string>;
}

/** Ops that put rows behind others. */
const APPENDING: Reads = { concat: ["axis"], append_rows: ["heads", "capacity"] };

/** New rows, as they lie: with the rest of the dims of the past, or rows of this many heads. */
interface NewRows {
  readonly rows: Value;
  readonly heads?: number;
}

/** Replaces every result that is a past with new rows; others stay whole. */
export function newRowsOnly(graph: Graph, pasts: ReadonlyMap<string, PastOf>): NewRowsGraph {
  const { made } = matchContext(graph, APPENDING);
  const fresh = new Map<Value, NewRows>();
  for (const output of graph.outputs) {
    const past = pasts.get(output.name), node = made.get(output);
    const found = past && node && newRowsOf(node, past);
    // An output of its own name, or something that no node makes, cannot have a second name.
    const isFree = found?.rows.role === "activation" && !graph.outputs.includes(found.rows) &&
      ![...fresh.values()].some(({ rows }) => rows === found.rows);
    if (isFree) fresh.set(output, found);
  }
  if (fresh.size === 0) return { graph, replaced: new Set() };
  return {
    graph: rename(graph, fresh),
    replaced: new Set([...fresh.keys()].map(({ name }) => name)),
  };
}

function newRowsOf(node: Node, { name, axis }: PastOf): NewRows | undefined {
  const { op, inputs, attributes } = node;
  const isPast = (value: Value | undefined) => value?.role === "input" && value.name === name;
  if (op === "append_rows") {
    const [rows, past] = inputs;
    if (!isPast(past) || axis !== 2) return undefined;
    const isJoined = rows!.shape.length === 3;
    return { rows: rows!, ...isJoined && { heads: attributes.heads as number } };
  }
  const [before, rows] = inputs;
  if (op !== "concat" || inputs.length !== 2 || !isPast(before)) return undefined;
  return axisOf(attributes.axis as number, rows!.shape.length) === axis
    ? { rows: rows! }
    : undefined;
}

// Values keep their order; only which of them are outputs, and by what names, changes.
function rename(graph: Graph, fresh: ReadonlyMap<Value, NewRows>): Graph {
  const { builder, move, node: add } = copyGraph(graph);
  const planes = (rows: Value, heads: number): Value => {
    const [batch, count, columns] = rows.shape as [Dim, Dim, Dim];
    const shape = [batch, count, heads, exactDiv(columns, heads)!];
    const [split] = builder.op("reshape", [rows], { shape }, `${rows.name}.heads`);
    return builder.op("transpose", [split!], { perm: [0, 2, 1, 3] }, `${rows.name}.planes`)[0]!;
  };
  for (const node of graph.nodes) add(node);
  for (const value of graph.outputs) {
    const { rows, heads } = fresh.get(value) ?? { rows: value };
    const moved = move(rows);
    builder.output(value.name, heads === undefined ? moved : planes(moved, heads));
  }
  return builder.build();
}
