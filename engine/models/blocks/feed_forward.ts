// Feed-forward blocks by kind. `gated`: down(act(gate x) · up x); `plain`: down(act(up x)); `mixture`: see
// mixture.ts, whose dense layers and shared experts are gated blocks too.

import type { Value } from "../../graph/graph.ts";
import { activated } from "./activation.ts";
import { type BlockContext, linear } from "./context.ts";
import { gated } from "./gated.ts";
import { isSparse, mixture } from "./mixture.ts";

/** f32[M, hidden] → f32[M, hidden]. */
export function feedForward(
  context: BlockContext,
  { x, layer }: { readonly x: Value; readonly layer: number },
): Value {
  const { kind } = context.spec.feedForward;
  const inner = context.params.feedForward;
  if (kind === "plain") return plain(context, x, layer);
  if (kind === "mixture" && isSparse(context, layer)) return mixture(context, { x, layer });
  return gated(context, x, { layer, inner, prefix: "" });
}

function plain(context: BlockContext, x: Value, layer: number): Value {
  const { spec, params: { hidden, feedForward: inner } } = context;
  const { bias } = spec.feedForward;
  const path = `layers.${layer}.feed_forward`;
  const wide = linear(context, x, {
    role: "up",
    name: `${path}.up`,
    rows: inner,
    columns: hidden,
    layer,
    bias,
  });
  const active = activated(context, { x: wide, name: `${path}.activation` });
  const role = "down", name = `${path}.down`;
  return linear(context, active, { role, name, rows: hidden, columns: inner, layer, bias });
}
