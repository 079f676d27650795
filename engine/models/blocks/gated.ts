// The gated block: down(act(gate x) · up x), or its bounded form. It is a whole feed-forward block, a
// dense layer of a mixture, and a shared expert.

import type { Value } from "../../graph/graph.ts";
import { activationOf } from "./activation.ts";
import { type BlockContext, linear, needed } from "./context.ts";

/** Sizes and place of a gated block. */
export interface GatedOptions {
  readonly layer: number;
  readonly inner: number;
  /** In front of the roles "gate", "up" and "down". */
  readonly prefix: string;
}

/** f32[M, hidden] → f32[M, hidden]. */
export function gated(
  context: BlockContext,
  x: Value,
  { layer, inner, prefix }: GatedOptions,
): Value {
  const { spec, params: { hidden } } = context;
  const { bias } = spec.feedForward;
  const path = `layers.${layer}.feed_forward.${prefix}`;
  const widen = (part: "gate" | "up") => {
    const role = `${prefix}${part}`, name = `${path}${part}`;
    return linear(context, x, { role, name, rows: inner, columns: hidden, layer, bias });
  };
  const product = glu(context, { gate: widen("gate"), up: widen("up"), name: `${path}glu` });
  const role = `${prefix}down`, name = `${path}down`;
  return linear(context, product, { role, name, rows: hidden, columns: inner, layer, bias });
}

/** act(gate) · up, or its bounded form. */
export function glu(
  context: BlockContext,
  { gate, up, name }: { readonly gate: Value; readonly up: Value; readonly name: string },
): Value {
  const { builder, spec } = context;
  if (spec.feedForward.clamped) {
    const { gluLimit: limit, gluAlpha: alpha } = needed(context, ["gluLimit", "gluAlpha"]);
    return builder.op("glu", [gate, up], { activation: "clamped", limit, alpha }, name)[0]!;
  }
  return builder.op("glu", [gate, up], { activation: activationOf(context) }, name)[0]!;
}
