// matmul_q8: matmul on 8-bit activations. A kernel multiplies integers and applies the scales of both
// sides a group at a time; the meaning is the product of the numbers both sides stand for.

import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { requireInput } from "../shape_rules.ts";
import { inferMatmul, matmulRows } from "./matmul.ts";

/** (x q8[…, K], weight [N, K], bias [N]?) → f32[…, N]. */
export const matmulQ8: OpRecord = defineOp({
  name: "matmul_q8",
  summary: "x · weightᵀ + bias with 8-bit activations",
  attributes: {},
  infer(inputs) {
    return inferMatmul(inputs, requireInput(inputs, 0, "x", { dtype: "q8", minRank: 1 }));
  },
  reference({ inputs: [x, weight, bias], outputs: [out] }) {
    matmulRows(x!, weight!, bias, out!);
  },
  kernels: { wasm: [], gpu: [] },
});
