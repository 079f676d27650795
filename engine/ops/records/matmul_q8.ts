// matmul_q8: matmul on 8-bit activations. A kernel multiplies integers and applies the scales of both
// sides a group at a time; the meaning is the product of the numbers both sides stand for.

import { getFormat } from "../../../quant/mod.ts";
import { WEIGHT_FORMATS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import type { CaseInput } from "../op_case.ts";
import { requireInput } from "../shape_rules.ts";
import { inferMatmul, matmulCase, matmulRows, otherMatmulCases, SIZES } from "./matmul.ts";

/** (x q8[…, K], weight [N, K], bias [N]?) → f32[…, N]. */
export const matmulQ8: OpRecord = defineOp({
  name: "matmul_q8",
  summary: "x · weightᵀ + bias with 8-bit activations",
  attributes: {},
  packedInput: 1,
  infer(inputs) {
    return inferMatmul(inputs, requireInput(inputs, 0, "x", { dtype: "q8", minRank: 1 }));
  },
  reference({ inputs: [x, weight, bias], outputs: [out] }) {
    matmulRows(x!, weight!, bias, out!);
  },
  cases(random) {
    const usual = WEIGHT_FORMATS.filter((format) => getFormat(format).blockSize >= 32)
      .flatMap((format) =>
        SIZES.map(([rows, outputs, blocks]) => {
          const columns = blocks * getFormat(format).blockSize;
          return matmulCase(random, { format, rows, outputs, columns });
        })
      );
    return [...usual, ...otherMatmulCases(random)].map(({ inputs: [x, ...rest], ...others }) => (
      { ...others, inputs: [{ ...x, role: "quantized" } as CaseInput, ...rest] }
    ));
  },
  tolerance: {
    // A rounding tie may fall the other way where a kernel multiplies by 1 / scale.
    ofLargest: 2e-3,
    reason: "one 8-bit step of one activation",
  },
});
