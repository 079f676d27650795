// ungroup_heads: attention takes heads that were repeated for grouped queries as they were before, so that nothing
// is copied; it knows which query head reads which of them.
//   attention(q, repeat(k), repeat(v))  →  attention(q, k, v) of fewer heads of keys and values

import { type Dim, equal } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { hasShape, type MatchContext, WHOLE } from "./match.ts";
import { defineReplacement, type Pass } from "./pass.ts";

/** Takes the repetition of heads out of the way of attention. */
export const ungroupHeads: Pass = defineReplacement({
  name: "ungroup_heads",
  reads: { attention: WHOLE, reshape: ["shape"], expand: ["shape"] },
  match({ op, inputs: [, keys, values, , , , newKeys], attributes }, seen) {
    const isOfPlanes = op === "attention" && attributes.q_heads !== 0;
    if (!isOfPlanes || !keys || !values || newKeys) return undefined;
    const k = ungrouped(keys, seen).base, v = ungrouped(values, seen).base;
    return k !== keys && v !== values && equal(k.shape[1]!, v.shape[1]!) ? { k, v } : undefined;
  },
  replace({ node, inputs, op, moved }, { k, v }) {
    const attributes = { ...node.attributes, kv_heads: k.shape[1] as number };
    const values = inputs.with(1, moved(k)).with(2, moved(v));
    return op(node.op, values, attributes, node.name);
  },
});

/** What [B, H, T, D] is [B, G, T, D] of, with every head repeated: reshape ← expand ← reshape; else the value. */
export function ungrouped(value: Value, { made }: MatchContext): { readonly base: Value } {
  const none = { base: value };
  const outer = made.get(value);
  const expand = outer?.op === "reshape" ? made.get(outer.inputs[0]!) : undefined;
  const inner = expand?.op === "expand" ? made.get(expand.inputs[0]!) : undefined;
  if (!inner || inner.op !== "reshape") return none;
  const base = inner.inputs[0]!, spread = expand!.outputs[0]!, single = inner.outputs[0]!;
  if (base.shape.length !== 4 || spread.shape.length !== 5) return none;
  const [b, g, t, d] = base.shape as [Dim, Dim, Dim, Dim];
  const repeats = spread.shape[2]!;
  const fits = hasShape(single, [b, g, 1, t, d]) && hasShape(spread, [b, g, repeats, t, d]) &&
    typeof g === "number" && typeof repeats === "number" &&
    hasShape(value, [b, g * repeats, t, d]);
  return fits ? { base } : none;
}
