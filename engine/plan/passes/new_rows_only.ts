// Results that are an input with new rows behind it (spec TL-12, `Concat(past, new)`) become those new rows
// alone: whoever feeds the past has it already. Not in the list of passes, because it changes what a graph
// gives out; the caller is told which results changed.

import type { Graph, Node, Value } from "../../graph/graph.ts";
import { axisOf } from "../../graph/host_numbers.ts";
import { copyGraph } from "./copy_graph.ts";
import { producersOf } from "./rewrite.ts";

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

/** Replaces every result that is `Concat(past, new)`; others stay whole. */
export function newRowsOnly(graph: Graph, pasts: ReadonlyMap<string, PastOf>): NewRowsGraph {
  const producers = producersOf(graph);
  const fresh = new Map<Value, Value>();
  for (const output of graph.outputs) {
    const past = pasts.get(output.name), node = producers.get(output);
    const rows = past && node && newRowsOf(node, past);
    // An output of its own name, or something that no node makes, cannot have a second name.
    const isFree = rows?.role === "activation" && !graph.outputs.includes(rows) &&
      ![...fresh.values()].includes(rows);
    if (isFree) fresh.set(output, rows);
  }
  if (fresh.size === 0) return { graph, replaced: new Set() };
  return {
    graph: rename(graph, fresh),
    replaced: new Set([...fresh.keys()].map(({ name }) => name)),
  };
}

function newRowsOf({ op, inputs, attributes }: Node, { name, axis }: PastOf): Value | undefined {
  if (op !== "concat" || inputs.length !== 2) return undefined;
  const [before, rows] = inputs as [Value, Value];
  const isPast = before.role === "input" && before.name === name;
  return isPast && axisOf(attributes.axis as number, rows.shape.length) === axis ? rows : undefined;
}

// Values keep their order; only which of them are outputs, and by what names, changes.
function rename(graph: Graph, fresh: ReadonlyMap<Value, Value>): Graph {
  const { builder, move, node: add } = copyGraph(graph);
  for (const node of graph.nodes) add(node);
  for (const value of graph.outputs) builder.output(value.name, move(fresh.get(value) ?? value));
  return builder.build();
}
