// fuse_norm_behind: a product that adds something writes the layer norm of the sum too, where the device has a kernel for
// that: what adds up the sums of its parts has whole rows at hand (gpu/kernels/matmul/reduce.ts). The sum stays, as most
// encoders go on with it:
//   y = matmul(x, W, b, r), n = norm(y, g, s) → (y, n) = matmul(x, W, b, r, g, s)

import type { Node } from "../../graph/graph.ts";
import type { MatchContext } from "./match.ts";
import { definePass, draftOf, type NodeDraft, type Pass, type PassContext } from "./pass.ts";

/** Moves norms into the products before them. */
export const fuseNormBehind: Pass = definePass({
  name: "fuse_norm_behind",
  reads: { norm: ["centred", "epsilon"], matmul: [] },
  suits: ({ fusesNeighbours }) => fusesNeighbours !== false,
  run(context, { takes }) {
    const fused = new Map<Node, NodeDraft>(), norms = new Map<Node, Node>();
    for (const node of context.nodes) {
      const found = match(node, context, takes);
      if (!found || fused.has(found.product)) continue;
      fused.set(found.product, found.draft);
      norms.set(node, found.product);
    }
    if (fused.size === 0) return undefined;
    const normed = new Map<Node, NodeDraft["outputs"][number]>();
    return context.rewrite(({ node, op, moved, copy }) => {
      const draft = fused.get(node), product = norms.get(node);
      if (product) return [normed.get(product)!];
      if (!draft) return copy();
      const inputs = draft.inputs.map((value) => value && moved(value));
      const [sum, behind] = op("matmul", inputs, draft.attributes, node.name, draft.outputs);
      normed.set(node, behind!);
      return [sum!];
    });
  },
});

function match(
  { op, inputs: [value, gain, shift], attributes: { centred, epsilon } }: Node,
  { made }: MatchContext,
  takes: PassContext["takes"],
): { readonly product: Node; readonly draft: NodeDraft } | undefined {
  const product = op === "norm" && centred === true ? made.get(value!) : undefined;
  // What is not there when the product is made cannot be multiplied by.
  const isKnown = [gain, shift].every((vector) =>
    !vector || vector.role === "weight" || vector.role === "constant"
  );
  if (product?.op !== "matmul" || !product.inputs[3] || !isKnown) return undefined;
  const draft = draftOf("matmul", {
    inputs: [...[0, 1, 2, 3].map((i) => product.inputs[i]), gain, shift],
    given: { norm_behind: true, epsilon: epsilon! },
  });
  return takes(draft) ? { product, draft } : undefined;
}
