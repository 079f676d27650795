// fuse_residual: a product whose only reader adds it to something of its shape adds it by itself, where the device
// has a kernel for that (spec MD-9):
//   add(r, matmul(x, W, b)) → matmul_add(x, W, b, r), and the same for matmul_q8.

import type { Node, Value } from "../../graph/graph.ts";
import { sameShape } from "./match.ts";
import { definePass, type Pass } from "./pass.ts";

/** The form of a product that adds something. */
export const withSum: ReadonlyMap<string, string> = new Map([
  ["matmul", "matmul_add"],
  ["matmul_q8", "matmul_add_q8"],
]);

/** Moves sums into the products before them. */
export const fuseResidual: Pass = definePass({
  name: "fuse_residual",
  reads: { add: [], matmul: [], matmul_q8: [] },
  suits: ({ hasKernel }) => [...withSum.values()].some(hasKernel),
  run({ made, readers, outputs, rewrite }, { hasKernel }) {
    /** The product that may add `other`, if `value` is one. */
    function productOf(value: Value, other: Value): Node | undefined {
      const product = made.get(value);
      const form = product && withSum.get(product.op);
      const alone = readers.get(value)!.length === 1 && !outputs.has(value);
      return form && hasKernel(form) && alone && sameShape(value, other) ? product : undefined;
    }

    return rewrite(({ node, op, moved, copy }) => {
      const [a, b] = node.inputs;
      if (node.op !== "add" || a === b) return copy();
      for (const [value, other] of [[b!, a!], [a!, b!]] as const) {
        const product = productOf(value, other);
        if (!product) continue;
        const [x, weight, bias] = product.inputs.map((input) => input && moved(input));
        const inputs = [x, weight, bias, moved(other)];
        return op(withSum.get(product.op)!, inputs, {}, node.name);
      }
      return copy();
    });
  },
});
