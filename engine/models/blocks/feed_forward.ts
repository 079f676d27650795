// Feed-forward blocks by kind. `gated`: down(act(gate x) * up x).

import type { Value } from "../../graph/graph.ts";
import { activationOf } from "./activation.ts";
import { apply, type BlockContext, linear } from "./context.ts";

/** f32[M, hidden] → f32[M, hidden]. */
export function feedForward(
  context: BlockContext,
  x: Value,
  { layer, file }: { layer: number; file: string },
): Value {
  const { builder, spec, params } = context;
  const path = `layers.${layer}.feed_forward`;
  const { hidden, feedForward: inner } = params;
  const { bias } = spec.feedForward;
  const widen = (role: "gate" | "up") =>
    linear(context, x, {
      role,
      name: `${path}.${role}`,
      rows: inner,
      columns: hidden,
      layer,
      bias,
    });
  const product = apply(builder, "glu", `${path}.glu`, [widen("gate"), widen("up")], {
    activation: activationOf(spec.feedForward.activation ?? params.activation, file),
  });
  return linear(context, product, {
    role: "down",
    name: `${path}.down`,
    rows: hidden,
    columns: inner,
    layer,
    bias,
  });
}
