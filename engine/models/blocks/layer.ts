// One layer: the residual branches of a spec in their order. The blocks behind a branch are found by the
// spec's word; what kind of attention a stack has is in its context.

import type { Value } from "../../graph/graph.ts";
import type { ModelSpec } from "../spec.ts";
import { attention, type AttentionOptions } from "./attention.ts";
import { type BlockContext, norm, scaled, weight } from "./context.ts";
import { crossAttention } from "./cross_attention.ts";
import { feedForward } from "./feed_forward.ts";
import { latentAttention } from "./latent_attention.ts";

/** x = sum(x + residual · scale · after(block(before(from)))) for each branch: f32[M, hidden] → f32[M, hidden]. */
export function buildLayer(
  context: BlockContext,
  input: Value,
  { layer, kind }: AttentionOptions,
): Value {
  const { builder, spec, params: { hidden: size } } = context;
  const path = `layers.${layer}`;
  const normed = (x: Value, role: string | undefined) =>
    role === undefined ? x : norm(context, x, { role, name: `${path}.${role}`, size, layer });
  let x = input;
  for (const { block, before, after, scale, sum, from } of spec.layer) {
    const read = normed(from === "layer" ? input : x, before);
    const branch = BLOCKS[block](context, read, { layer, kind });
    const added = scaled(context, {
      x: channelsScaled(context, normed(branch, after), { role: scale, layer }),
      factor: spec.residual,
      name: `${path}.${block}.scaled`,
    });
    const total = builder.op("binary", [x, added], {
      kind: "add",
    }, `${path}.${block}.residual`)[0]!;
    x = normed(total, sum);
  }
  return x;
}

/** Times learnt factors, one a channel (Touvron et al., "Going deeper with Image Transformers", 2021). */
function channelsScaled(
  context: BlockContext,
  x: Value,
  { role, layer }: { readonly role: string | undefined; readonly layer: number },
): Value {
  if (role === undefined) return x;
  const factors = weight(context, { role, shape: [context.params.hidden], layer });
  return context.builder.op("binary", [x, factors], { kind: "mul" }, `layers.${layer}.${role}`)[0]!;
}

type Block = (context: BlockContext, x: Value, options: AttentionOptions) => Value;

const BLOCKS: Readonly<Record<ModelSpec["layer"][number]["block"], Block>> = {
  attention: (context, x, options) =>
    context.spec.attention.kind === "latent"
      ? latentAttention(context, x, options)
      : attention(context, x, options),
  cross: crossAttention,
  feedForward: (context, x, { layer }) => feedForward(context, { x, layer }),
};
