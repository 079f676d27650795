// fuse_gated: both halves of a gated feed-forward block come out of one product, where the device has a kernel that
// takes them as halves of a row:
//   glu(matmul(x, G), matmul(x, U)) → glu_halves(matmul(x, [G; U])), and the same for glu_q8;
//   glu_q8(matmul_q8(x, G), matmul_q8(x, U)) → matmul_glu_q8(x, [G; U]), where there is a kernel for all of it.

import { WHOLE } from "./match.ts";
import { definePass, type Pass } from "./pass.ts";
import { canJoin, joinInputs } from "./joined_weights.ts";

/** The form of an op that takes a row of two halves. */
export const gluHalves: ReadonlyMap<string, string> = new Map([
  ["glu", "glu_halves"],
  ["glu_q8", "glu_halves_q8"],
]);

/** Product, gate and quantisation in one. */
export const gluProduct: string = "matmul_glu_q8";

/** Joins the products before a gate. */
export const fuseGated: Pass = definePass({
  name: "fuse_gated",
  reads: { glu: WHOLE, glu_q8: WHOLE, matmul: [], matmul_q8: [] },
  suits: ({ hasKernel }) => [...gluHalves.values()].some(hasKernel),
  run({ made, readers, rewrite }, { hasKernel }) {
    return rewrite(({ node, op, weight, moved, copy }) => {
      const halves = gluHalves.get(node.op);
      if (!halves || !hasKernel(halves)) return copy();
      const products = node.inputs.map((value) =>
        value && readers.get(value)!.length === 1 ? made.get(value) : undefined
      );
      if (!canJoin(products)) return copy();
      const [first] = products;
      const name = `${first!.name}_up`;
      const joined = joinInputs(products, 1)!, bias = joinInputs(products, 2);
      const inputs = [
        moved(first!.inputs[0]!),
        weight(joined.name, joined),
        bias && weight(bias.name, bias),
      ];
      if (node.op === "glu_q8" && first!.op === "matmul_q8" && hasKernel(gluProduct)) {
        return op(gluProduct, inputs, node.attributes, node.name);
      }
      const product = op(first!.op, inputs, {}, name);
      return op(halves, product, node.attributes, node.name);
    });
  },
});
