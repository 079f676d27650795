// What is cut into parts: transfers are the edges between parts by themselves, so that a value which is received once and
// read in two parts of a device comes to both.

import type { Node, Value } from "../graph/graph.ts";
import type { PlacedGraph } from "./place_graph.ts";

const isTransfer = ({ op }: Node) => op === "send" || op === "recv";

/** The graph without `send` and `recv`. */
export function lowerTransfers({ graph, partition, ...rest }: PlacedGraph): PlacedGraph {
  const sources = new Map<number, Value>();
  const source = (value: Value) => sources.get(value.id) ?? value;
  const places = new Map<Node, number>();
  for (const node of graph.nodes) {
    const inputs = node.inputs.map((value) => value && source(value));
    if (isTransfer(node)) sources.set(node.outputs[0]!.id, inputs[0]!);
    else places.set({ ...node, inputs }, partition.get(node)!);
  }
  return {
    ...rest,
    graph: { ...graph, nodes: [...places.keys()], outputs: graph.outputs.map(source) },
    partition: places,
  };
}
