// fuse_function: a product whose only reader is a function of single elements applies it by itself, where the device has a
// kernel for that (spec MD-9):
//   f(matmul(x, W, b)) → matmul(x, W, b) with an activation

import { ACTIVATION_NAMES } from "../../../functions/unary.ts";
import type { Node } from "../../graph/graph.ts";
import { type MatchContext, nameOf, soleMaker } from "./match.ts";
import {
  defineReplacement,
  draftOf,
  makeDraft,
  type NodeDraft,
  type Pass,
  type PassContext,
} from "./pass.ts";

/** Moves functions into the products before them. */
export const fuseFunction: Pass = defineReplacement({
  name: "fuse_function",
  reads: { unary: ["kind", "alpha"], matmul: [] },
  suits: ({ fusesNeighbours }) => fusesNeighbours !== false,
  match,
  replace: makeDraft,
});

function match(node: Node, context: MatchContext, { takes }: PassContext): NodeDraft | undefined {
  const activation = ACTIVATION_NAMES.find((name) => name === nameOf(node));
  const product = activation && soleMaker(node.inputs[0]!, { name: "matmul", context });
  if (!product || product.inputs[3]) return undefined;
  const draft = draftOf("matmul", {
    inputs: product.inputs,
    given: { activation: activation!, alpha: node.attributes.alpha ?? 1 },
  });
  return takes(draft) ? draft : undefined;
}
