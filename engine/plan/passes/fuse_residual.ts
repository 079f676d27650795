// fuse_residual: a product whose only reader adds it to something of its shape adds it by itself, where the device
// has a kernel for that (spec MD-9):
//   add(r, matmul(x, W, b)) → matmul(x, W, b, r)

import type { Node } from "../../graph/graph.ts";
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
  match,
  replace: makeDraft,
});

function match(
  node: Node,
  { made, readers, outputs }: MatchContext,
  { takes }: PassContext,
): NodeDraft | undefined {
  const [a, b] = node.inputs;
  if (nameOf(node) !== "add" || a === b) return undefined;
  for (const [value, other] of [[b!, a!], [a!, b!]] as const) {
    const product = made.get(value);
    const alone = readers.get(value)!.length === 1 && !outputs.has(value);
    if (product?.op !== "matmul" || product.inputs[3] || !alone) continue;
    if (!sameShape(value, other)) continue;
    const draft = draftOf("matmul", {
      inputs: [...[0, 1, 2].map((i) => product.inputs[i]), other],
    });
    if (takes(draft)) return draft;
  }
  return undefined;
}
