// A graph built anew, value by value: for passes that change what a graph takes or gives, which rewrite.ts
// leaves as it is.

import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import type { Graph, HostData, Node, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";

/** A copy under way; inputs are there already. */
export interface GraphCopy {
  readonly builder: GraphBuilder;
  /** What stands for a value in the copy; weights and constants move when they are first used. */
  move(value: Value): Value;
  /** Adds a node, with other inputs if they are given. */
  node(node: Node, inputs?: readonly (Value | undefined)[]): void;
}

/** Begins a copy of a graph without states. */
export function copyGraph(graph: Graph): GraphCopy {
  const builder = createGraphBuilder(graph.name, getOp);
  const moved = new Map<Value, Value>();
  for (const value of graph.inputs) {
    moved.set(value, builder.input(value.name, value.shape, value.dtype));
  }
  const move = (value: Value): Value => {
    const known = moved.get(value);
    if (known) return known;
    const { name, tensor, data, shape, dtype } = value;
    const made = tensor
      ? builder.weight(name, tensor, dtype)
      : builder.constant(name, data as HostData, shape as readonly number[], dtype);
    moved.set(value, made);
    return made;
  };
  return {
    builder,
    move,
    node(node, inputs = node.inputs.map((value) => value && move(value))) {
      const made = builder.op(node.op, inputs, node.attributes, node.name);
      node.outputs.forEach((value, i) => moved.set(value, made[i]!));
    },
  };
}
