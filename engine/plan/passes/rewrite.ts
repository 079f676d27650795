// The one way in which passes change graphs: walk the nodes in order and build a new graph, in which a
// visitor may put other values in the place of a node's outputs.

import type { GraphBuilder } from "../../graph/builder.ts";
import type { Graph, Node, TensorType, Value } from "../../graph/graph.ts";
import { copyGraph } from "./copy_graph.ts";

/** One node on its way into the new graph. */
export interface Visit {
  readonly node: Node;
  /** The node's inputs as values of the new graph. */
  readonly inputs: readonly (Value | undefined)[];
  /** Adds a node to the new graph. */
  readonly op: GraphBuilder["op"];
  /** Adds a weight to the new graph. */
  readonly weight: GraphBuilder["weight"];
  /** Adds a constant to the new graph. */
  readonly constant: GraphBuilder["constant"];
  /** A value of the old graph that was made before, in the new one. */
  moved(value: Value): Value;
  /** Adds a node like the visited one. */
  copy(): Value[];
}

/** Builds a new graph; the visitor returns what stands for the node's outputs. */
export function rewrite(graph: Graph, visit: (visit: Visit) => readonly Value[]): Graph {
  const { builder, move, stand } = copyGraph(graph);
  const { op, weight, constant } = builder;
  for (const node of graph.nodes) {
    const inputs = node.inputs.map((value) => value && move(value));
    const copy = () => op(node.op, inputs, node.attributes, node.name, typesOf(node, inputs));
    stand(node, visit({ node, inputs, op, weight, constant, moved: move, copy }));
  }
  for (const value of graph.outputs) builder.output(value.name, move(value));
  return builder.build();
}

/** Types of a node's outputs where its inputs have kept theirs: then they need not be inferred again. */
function typesOf(
  node: Node,
  inputs: readonly (Value | undefined)[],
): readonly TensorType[] | undefined {
  const isKept = inputs.every((value, i) => value === undefined || hasType(value, node.inputs[i]!));
  return isKept ? node.outputs : undefined;
}

function hasType({ dtype, shape }: Value, other: Value): boolean {
  return dtype === other.dtype && shape.length === other.shape.length &&
    shape.every((dim, i) => dim === other.shape[i]);
}

/** The nodes that read each value. */
export function readersOf(graph: Graph): Map<Value, Node[]> {
  const readers = new Map<Value, Node[]>();
  for (const node of graph.nodes) {
    for (const value of node.inputs) {
      if (!value) continue;
      const known = readers.get(value);
      if (!known) readers.set(value, [node]);
      else if (known.at(-1) !== node) known.push(node);
    }
  }
  return readers;
}

/** The node that makes each value. */
export function producersOf({ nodes }: Pick<Graph, "nodes">): Map<Value, Node> {
  return new Map(nodes.flatMap((node) => node.outputs.map((value) => [value, node])));
}
