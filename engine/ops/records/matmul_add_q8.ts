// matmul_add_q8: matmul_add on 8-bit activations. Made by a pass (engine/plan/passes/fuse_residual.ts).

import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { requireInput } from "../shape_rules.ts";
import { addProduct, inferMatmulAdd, withResidual } from "./matmul_add.ts";
import { matmulQ8 } from "./matmul_q8.ts";

/** (x q8[…, K], weight [N, K], bias [N]?, residual f32[…, N]) → f32[…, N]. */
export const matmulAddQ8: OpRecord = defineOp({
  name: "matmul_add_q8",
  summary: "residual + x · weightᵀ + bias with 8-bit activations",
  attributes: {},
  infer(inputs) {
    return inferMatmulAdd(inputs, requireInput(inputs, 0, "x", { dtype: "q8", minRank: 1 }));
  },
  reference: ({ inputs, outputs: [out] }) => addProduct(inputs, out!),
  cases: (random) => withResidual(random, matmulQ8.cases!(random)),
  tolerance: { ofLargest: 2e-3, reason: "one 8-bit step of one activation" },
});
