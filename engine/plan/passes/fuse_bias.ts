// fuse_bias: a vector that is added to a matrix product becomes the product's bias, which its kernel adds
// while the sums are still in registers. ONNX has no bias on MatMul, so every linear layer comes so.

import { equal } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { type MatchContext, nameOf, soleMaker } from "./match.ts";
import { definePass, type Pass } from "./pass.ts";

/** Moves sums with a vector into the product before them. */
export const fuseBias: Pass = definePass({
  name: "fuse_bias",
  reads: { matmul: [], binary: ["kind"] },
  suits: ({ hasKernel }) => hasKernel("matmul"),
  run(context) {
    const found = new Map<Node, { readonly product: Node; readonly bias: Value }>();
    for (const node of context.nodes) {
      const fused = match(node, context);
      if (fused) found.set(node, fused);
    }
    if (found.size === 0) return undefined;
    return context.rewrite(({ node, op, moved, copy }) => {
      const fused = found.get(node);
      if (!fused) return copy();
      const [x, weight, , ...rest] = fused.product.inputs.map((value) => value && moved(value));
      return op("matmul", [x, weight, moved(fused.bias), ...rest], {}, node.name);
    });
  },
});

function match(node: Node, context: MatchContext) {
  if (nameOf(node) !== "add") return undefined;
  const [a, b] = node.inputs;
  for (const [sums, bias] of [[a!, b!], [b!, a!]] as const) {
    const isKnown = bias.role === "weight" || bias.role === "constant";
    if (!isKnown || bias.shape.length !== 1 || sums.shape.length === 0) continue;
    const product = soleMaker(sums, "matmul", context);
    if (product && !product.inputs[2] && equal(bias.shape[0]!, sums.shape.at(-1)!)) {
      return { product, bias };
    }
  }
  return undefined;
}
