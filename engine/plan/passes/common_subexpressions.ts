// common_subexpressions: one node for all that apply the same op to the same inputs, and one constant
// for all of equal content. Layers that share their rope frequencies so share one table, and q, k and v
// share one quantised input.

import type { Attributes, Value } from "../../graph/graph.ts";
import type { HostData } from "../../ops/op.ts";
import { changesState } from "../../ops/mod.ts";
import { sameAttribute } from "./match.ts";
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
    const seen = new Map<string, Made[]>();
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
      const key = `${node.op} ${merged.map((value) => value?.id).join()}`;
      const alike = seen.get(key) ?? [];
      // Each output of the graph has a name of its own, so it stays a value of its own.
      const known = node.outputs.some((value) => outputs.has(value))
        ? undefined
        : alike.find(({ attributes }) => sameAttributes(attributes, node.attributes));
      if (known) return known.results;
      const isSame = merged.every((value, i) => value === inputs[i]);
      const results = isSame ? copy() : op(node.op, merged, node.attributes, node.name);
      seen.set(key, [{ attributes: node.attributes, results }, ...alike]);
      return results;
    });
  },
};

/** What a node gives. */
interface Made {
  readonly attributes: Attributes;
  readonly results: readonly Value[];
}

// Those of one op have the same names.
function sameAttributes(a: Attributes, b: Attributes): boolean {
  for (const name in a) if (!sameAttribute(a[name]!, b[name])) return false;
  return true;
}

function constantKey({ data, dtype, shape }: Value): string | undefined {
  if (!data || (data as HostData).length > MOST_CONSTANT_ELEMENTS) return undefined;
  // -0 prints as 0 and NaNs all print alike, so the bits are compared.
  const bits = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return `${dtype}[${shape.join()}] ${bits.join()}`;
}
