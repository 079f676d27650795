// common_subexpressions: one node for all that apply the same op to the same inputs, and one constant
// for all of equal content. Layers that share their rope frequencies so share one table, and q, k and v
// share one quantised input.

import { exactText } from "../../ops/exact_text.ts";
import type { Node, Value } from "../../graph/graph.ts";
import type { HostData } from "../../ops/op.ts";
import { changesState } from "../../ops/mod.ts";
import type { Pass } from "./pass.ts";
import { rewrite } from "./rewrite.ts";

// Comparing larger constants would cost more than it can save.
const MOST_CONSTANT_ELEMENTS = 4096;

/** Merges equal nodes. */
export const commonSubexpressions: Pass = {
  name: "common_subexpressions",
  reads: "everything",
  run(graph) {
    const outputs = new Set(graph.outputs);
    const seen = new Map<string, readonly Value[]>();
    const constants = new Map<string, Value>();
    const first = (value: Value | undefined) => {
      const key = value && constantKey(value);
      if (!value || !key) return value;
      const known = constants.get(key) ?? value;
      constants.set(key, known);
      return known;
    };
    return rewrite(graph, ({ node, inputs, op, copy }) => {
      // A change of a state happens as often as it is written.
      if (changesState(node)) return copy();
      const merged = inputs.map(first);
      const key = nodeKey(node, merged);
      // Each output of the graph has a name of its own, so it stays a value of its own.
      const known = node.outputs.some((value) => outputs.has(value)) ? undefined : seen.get(key);
      const isSame = merged.every((value, i) => value === inputs[i]);
      const results = known ??
        (isSame ? copy() : op(node.op, merged, node.attributes, node.name));
      seen.set(key, results);
      return results;
    });
  },
};

function nodeKey({ op, attributes }: Node, inputs: readonly (Value | undefined)[]): string {
  const sorted = Object.entries(attributes).sort(([a], [b]) => a < b ? -1 : 1);
  return exactText([op, sorted, inputs.map((value) => value?.id ?? null)]);
}

function constantKey({ data, dtype, shape }: Value): string | undefined {
  if (!data || (data as HostData).length > MOST_CONSTANT_ELEMENTS) return undefined;
  // -0 prints as 0 and NaNs all print alike, so the bits are compared.
  const bits = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return `${dtype}[${shape.join()}] ${bits.join()}`;
}
