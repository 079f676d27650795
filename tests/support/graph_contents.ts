// Graphs compared by what they compute.

import type { Graph } from "../../engine/graph/graph.ts";

/** What a graph computes, without the identity of its records. */
export function contents({ nodes }: Graph): unknown[] {
  return nodes.map(({ op, name, attributes, inputs }) => ({
    op,
    name,
    attributes,
    inputs: inputs.map((value) => value && [value.name, value.dtype, value.data]),
  }));
}
