// expert_matmul_q8: expert_matmul on 8-bit activations. Made by a pass (engine/plan/passes).

import { getFormat } from "../../../quant/mod.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import type { CaseInput } from "../op_case.ts";
import { requireInput } from "../shape_rules.ts";
import { expertCases, expertRows, inferExpertMatmul } from "./expert_matmul.ts";

/** (x q8[M, k or 1, K], weights [E, N, K], chosen i32[M, k]?, bias [E · N]?) → f32[M, k, N]. */
export const expertMatmulQ8: OpRecord = defineOp({
  name: "expert_matmul_q8",
  summary: "8-bit rows times matrices chosen row by row",
  attributes: {},
  packedInput: 1,
  infer(inputs) {
    return inferExpertMatmul(inputs, requireInput(inputs, 0, "x", { dtype: "q8", rank: 3 }));
  },
  reference: ({ inputs, outputs: [out] }) => expertRows(inputs, out!),
  cases: (random) =>
    expertCases(random).flatMap(({ inputs: [x, weights, ...rest], ...others }) => {
      const isCodes = weights?.role === "weight" && getFormat(weights.format).blockSize >= 32;
      return isCodes
        ? [{ ...others, inputs: [{ ...x, role: "quantized" } as CaseInput, weights, ...rest] }]
        : [];
    }),
  tolerance: { ofLargest: 2e-3, reason: "one 8-bit step of one activation" },
});
