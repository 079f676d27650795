// matmul_int7: matmul on 8-bit activations and float weights that are rounded to 7 bit while they are loaded
// (quant/int7_groups.ts). The rounding is part of the op, so the reference does it too; made by a pass
// (engine/plan/passes/quantize_activations.ts) for precision "fast".

import { roundInt7Row } from "../../../quant/int7_groups.ts";
import { ROUNDED_FORMATS } from "../../../wasm/int7_layout.ts";
import { defineOp } from "../define_op.ts";
import { getElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import type { CaseInput } from "../op_case.ts";
import { requireInput } from "../shape_rules.ts";
import { inferMatmul, matmulCase, matmulRows, SIZES } from "./matmul.ts";

/** (x q8[…, K], weight [N, K], bias [N]?) → f32[…, N]. */
export const matmulInt7: OpRecord = defineOp({
  name: "matmul_int7",
  summary: "x · weightᵀ + bias with 8-bit activations and weights rounded to 7 bit",
  attributes: {},
  packedInput: 1,
  infer(inputs) {
    return inferMatmul(inputs, requireInput(inputs, 0, "x", { dtype: "q8", minRank: 1 }));
  },
  reference({ inputs: [x, weight, bias], outputs: [out] }) {
    matmulRows(x!, roundedRows(weight!), bias, out!);
  },
  cases: (random) =>
    ROUNDED_FORMATS.flatMap((format) =>
      [...SIZES, [131, 50, 4] as const].map(([rows, outputs, blocks]) => {
        const { inputs: [x, ...rest], ...others } = matmulCase(random, {
          ...{ format, rows, outputs, columns: 32 * blocks },
        });
        return { ...others, inputs: [{ ...x, role: "quantized" } as CaseInput, ...rest] };
      })
    ),
  tolerance: {
    // A rounding tie may fall the other way where a kernel multiplies by 1 / scale.
    ofLargest: 2e-3,
    reason: "one 8-bit step of one activation",
  },
});

/** The numbers that rounded rows stand for. */
function roundedRows(weight: HostTensor): HostTensor {
  const [height, width] = weight.shape as [number, number];
  const data = new Float32Array(height * width);
  for (let row = 0; row < height; row++) {
    const values = data.subarray(row * width, (row + 1) * width);
    for (let i = 0; i < width; i++) values[i] = getElement(weight, row * width + i);
    roundInt7Row(values);
  }
  return { ...weight, data };
}
