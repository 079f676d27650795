// fuse_bias: a vector that is added to a matrix product becomes the product's bias, which its kernel adds
// while the sums are still in registers. ONNX has no bias on MatMul, so every linear layer comes so.

import { equal } from "../../graph/dim/mod.ts";
import type { Node } from "../../graph/graph.ts";
import { type MatchContext, nameOf, soleMaker } from "./match.ts";
import { defineReplacement, draftOf, makeDraft, type NodeDraft, type Pass } from "./pass.ts";

/** Moves sums with a vector into the product before them. */
export const fuseBias: Pass = defineReplacement({
  name: "fuse_bias",
  reads: { matmul: [], binary: ["kind"] },
  suits: ({ hasKernel }) => hasKernel("matmul"),
  match,
  replace: makeDraft,
});

function match(node: Node, context: MatchContext): NodeDraft | undefined {
  if (nameOf(node) !== "add") return undefined;
  const [a, b] = node.inputs;
  for (const [sums, bias] of [[a!, b!], [b!, a!]] as const) {
    const isKnown = bias.role === "weight" || bias.role === "constant";
    if (!isKnown || bias.shape.length !== 1 || sums.shape.length === 0) continue;
    const product = soleMaker(sums, { name: "matmul", context });
    const [x, weight, known, ...rest] = product?.inputs ?? [];
    if (product && !known && equal(bias.shape[0]!, sums.shape.at(-1)!)) {
      return draftOf("matmul", { inputs: [x, weight, bias, ...rest] });
    }
  }
  return undefined;
}
