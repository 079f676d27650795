// Norms of query and key heads, each over its own channels. Most families have one weight for all heads; a few
// (Command R+, StableLM 2 12B) have one for each, which no norm of the graph takes: there the heads are
// normalised without a weight and multiplied by all of them as one row. Norms over all heads together are norms like
// any other and stand in attention.ts.

import { formatDim } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { type BlockContext, norm, normalized } from "./context.ts";

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
  const flat = builder.op("reshape", [normalized(context, { x, name })], {
    shape: [rows, `${width}`],
  }, `${name}.rows`)[0]!;
  const gained = builder.op("binary", [flat, row(role)], { kind: "mul" }, `${name}.gain`)[0]!;
  const biased = context.spec.norm.bias !== "none" && tensors.has(`${role}_bias`, layer)
    ? builder.op("binary", [gained, row(`${role}_bias`)], { kind: "add" }, `${name}.bias`)[0]!
    : gained;
  return builder.op("reshape", [biased], {
    shape: [rows, ...shape.map(String)],
  }, `${name}.heads`)[0]!;
}
