// norm_matmul_q8: a product that normalises and quantises its input by itself, so that a narrow model spends no step on it.
// Made by a pass (engine/plan/passes/fuse_norm.ts).

import { number } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import type { HostTensor } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import { checkInputCount } from "../shape_rules.ts";
import { inferMatmul, matmulRows } from "./matmul.ts";
import { inferQ8, quantizeGroups } from "./quantize_q8.ts";
import { rmsNormInput, rmsNormRows } from "./rms_norm.ts";

/** (x f32[…, K], gain [K]?, weight [N, K], bias [N]?) → f32[…, N]. */
export const normMatmulQ8: OpRecord = defineOp({
  name: "norm_matmul_q8",
  summary: "matmul_q8(rms_norm_q8(x, gain), weight, bias)",
  attributes: { epsilon: number(), base: number(0) },
  infer: (inputs) => inferNormMatmul(inputs),
  reference({ inputs: [x, gain, weight, bias], outputs: [out], attributes }) {
    matmulRows(normalized(x!, gain, attributes), weight!, bias, out!);
  },
  cases: (random) => normMatmulCases(random),
  tolerance: { ofLargest: 5e-3, reason: "one 8-bit step of some activations" },
});

/** Shape rule of the product. */
export function inferNormMatmul(inputs: readonly (TensorType | undefined)[]): TensorType[] {
  checkInputCount(inputs, 4);
  const x = rmsNormInput(inputs.slice(0, 2));
  return inferMatmul([inferQ8(x), inputs[2], inputs[3]], x);
}

/** The normalised rows, rounded to 8 bit; for both forms. */
export function normalized(
  x: HostTensor,
  gain: HostTensor | undefined,
  attributes: { readonly epsilon: number; readonly base: number },
): HostTensor {
  const rows: HostTensor = { ...x, data: new Float32Array(x.data.length) };
  rmsNormRows(x, gain, rows, attributes);
  quantizeGroups(rows, rows);
  return rows;
}

/** Cases of both forms; outputs are multiples of 64. */
export function normMatmulCases(random: CaseRandom): OpCase[] {
  const sizes = [
    ["Q4_0", 64, 128, 0],
    ["Q4_0", 64, 128, 1],
    ["Q4_K", 256, 192, 1],
    ["Q6_K", 512, 64, 3],
    ["Q4_1", 96, 128, 12],
    ["Q8_0", 576, 64, 1],
  ] as const;
  return sizes.map(([format, columns, outputs, rows], i) => ({
    name: `${format}, [${rows}, ${columns}] · [${outputs}, ${columns}]ᵀ`,
    inputs: [
      random.input([ROWS, columns], { M: rows }),
      i % 2 ? random.weight("F32", [columns]) : undefined,
      random.weight(format, [outputs, columns]),
      i % 3 ? random.weight("F32", [outputs]) : undefined,
    ],
    attributes: { epsilon: 1e-5, base: i === 3 ? 1 : 0 },
    bindings: { M: rows },
  }));
}
