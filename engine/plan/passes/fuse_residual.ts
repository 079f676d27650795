// fuse_residual: a product whose only reader adds it to something of its shape adds it by itself, where the device
// has a kernel for that (spec MD-9):
//   add(r, matmul(x, W, b)) → matmul(x, W, b, r)
// and fuse_branch: so does a convolution, before its activation.

import type { Node } from "../../graph/graph.ts";
import { CONV_RULES } from "../../ops/records/conv.ts";
import { type MatchContext, nameOf, sameShape } from "./match.ts";
import {
  defineReplacement,
  draftOf,
  makeDraft,
  type NodeDraft,
  type Pass,
  type PassContext,
} from "./pass.ts";

/** Moves sums into the products before them. */
export const fuseResidual: Pass = defineReplacement({
  name: "fuse_residual",
  reads: { binary: ["kind"], matmul: [] },
  suits: ({ fusesNeighbours }) => fusesNeighbours !== false,
  match: (node, seen, context) => match(node, seen, { ...context, op: "matmul" }),
  replace: makeDraft,
});

/** Moves sums of branches into the convolutions before them. */
export const fuseBranch: Pass = defineReplacement({
  name: "fuse_branch",
  reads: { binary: ["kind"], conv: Object.keys(CONV_RULES) },
  suits: ({ hasKernel }) => hasKernel("conv"),
  match: (node, seen, context) => match(node, seen, { ...context, op: "conv" }),
  replace: makeDraft,
});

function match(
  node: Node,
  { made, readers, outputs }: MatchContext,
  { op, takes }: Pick<PassContext, "takes"> & { readonly op: string },
): NodeDraft | undefined {
  const [a, b] = node.inputs;
  if (nameOf(node) !== "add" || a === b) return undefined;
  for (const [value, other] of [[b!, a!], [a!, b!]] as const) {
    const product = made.get(value);
    const alone = readers.get(value)!.length === 1 && !outputs.has(value);
    if (product?.op !== op || product.inputs[3] || !alone) continue;
    if (!sameShape(value, other)) continue;
    const draft = draftOf(op, {
      inputs: [...[0, 1, 2].map((i) => product.inputs[i]), other],
      given: product.attributes,
    });
    if (takes(draft)) return draft;
  }
  return undefined;
}
