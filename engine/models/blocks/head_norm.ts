// Norms of query and key heads, each over its own channels. Most families have one weight for all heads; a few
// (Command R+, StableLM 2 12B) have one for each, which no norm of the graph takes: there the heads are
// normalised without a weight and multiplied by all of them as one row. Norms over all heads together are norms like
// any other and stand in attention.ts.

import { formatDim } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { apply, type BlockContext, norm, normalized } from "./context.ts";

/** The role of the weight, the name of the node, and the layer. */
export interface HeadNormOptions {
  readonly role: string;
  readonly name: string;
  readonly layer: number;
}

/** f32[M, H, D] → f32[M, H, D]; x itself where the spec norms no heads. */
export function normHeads(context: BlockContext, x: Value, options: HeadNormOptions): Value {
  const [, heads, size] = x.shape as [unknown, number, number];
  switch (context.spec.attention.headNorm) {
    case "head":
      return norm(context, x, { ...options, size });
    case "per_head":
      return normEach(context, x, [heads, size], options);
    default:
      return x;
  }
}

function normEach(
  context: BlockContext,
  x: Value,
  shape: readonly [number, number],
  { role, name, layer }: HeadNormOptions,
): Value {
  const { builder, tensors } = context;
  const width = shape[0] * shape[1];
  const row = (role: string) => {
    const tensor = tensors.get(role, shape, layer);
    return builder.weight(tensor.name, { ...tensor, shape: [width] });
  };
  const rows = formatDim(x.shape[0]!);
  const flat = apply(builder, {
    op: "reshape",
    label: `${name}.rows`,
    inputs: [normalized(context, { x, name })],
    attributes: {
      shape: [rows, `${width}`],
    },
  });
  const gained = apply(builder, {
    op: "binary",
    label: `${name}.gain`,
    inputs: [flat, row(role)],
    attributes: { kind: "mul" },
  });
  const biased = context.spec.norm.bias !== "none" && tensors.has(`${role}_bias`, layer)
    ? apply(builder, {
      op: "binary",
      label: `${name}.bias`,
      inputs: [gained, row(`${role}_bias`)],
      attributes: { kind: "add" },
    })
    : gained;
  return apply(builder, {
    op: "reshape",
    label: `${name}.heads`,
    inputs: [biased],
    attributes: {
      shape: [rows, ...shape.map(String)],
    },
  });
}
