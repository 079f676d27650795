// A graph built anew, value by value: what rewrite.ts does for passes that leave what a graph takes and gives as it is,
// and by itself for those that change that.

import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import type { Graph, HostData, Node, StateType, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";

/** A copy under way; inputs and states are there already. */
export interface GraphCopy {
  readonly builder: GraphBuilder;
  /** What stands for a value in the copy; weights and constants move when they are first used, so unused ones stay. */
  move(value: Value): Value;
  /** Lets values of the copy stand for the outputs of a node. */
  stand(node: Node, values: readonly Value[]): void;
  /** Adds a node, with other inputs if they are given. */
  node(node: Node, inputs?: readonly (Value | undefined)[]): void;
}

/** Begins a copy of a graph. */
export function copyGraph(graph: Graph): GraphCopy {
  const builder = createGraphBuilder(graph.name, getOp);
  const moved = new Map<Value, Value>();
  for (const value of graph.inputs) {
    moved.set(value, builder.input(value.name, value.shape, value.dtype));
  }
  for (const value of graph.states) {
    const { name, shape, dtype } = value;
    moved.set(value, builder.state(name, shape as readonly number[], dtype as StateType));
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
  const stand: GraphCopy["stand"] = ({ outputs }, values) =>
    outputs.forEach((value, i) => moved.set(value, values[i]!));
  return {
    builder,
    move,
    stand,
    node(node, inputs = node.inputs.map((value) => value && move(value))) {
      stand(node, builder.op(node.op, inputs, node.attributes, node.name));
    },
  };
}
