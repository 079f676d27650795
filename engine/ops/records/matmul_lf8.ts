// matmul_lf8: matmul in LF8 on both sides, with the summation order of LlamaF's algorithm 1 (precision "strict";
// quant/lf8_products.ts is the definition). The weight is given as the bytes of the file, because the order of
// operations speaks of codes and scales, not of the numbers they stand for.

import {
  LF8_GROUP,
  lf8RowBytes,
  multiplyLf8Rows,
  quantizeLf8Row,
} from "../../../quant/lf8_products.ts";
import { getFormat } from "../../../quant/mod.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** (x u8[…, B], weight u8[N, B], bias [N]?) → f32[…, N], B bytes of LF8 a row. */
export const matmulLf8: OpRecord = defineOp({
  name: "matmul_lf8",
  summary: "x · weightᵀ + bias in LF8, in the order of LlamaF's algorithm 1",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 3);
    const x = requireInput(inputs, 0, "x", { dtype: "u8", minRank: 1 });
    const weight = requireInput(inputs, 1, "weight", { dtype: "u8", rank: 2 });
    const bias = optionalInput(inputs, 2, "bias", { rank: 1 });
    requireEqual(lastDim(x), weight.shape[1]!, "the bytes of a row of x and of the weight");
    const rows = weight.shape[0]!;
    if (bias) requireEqual(rows, bias.shape[0]!, "the rows of the weight and the bias");
    return [{ dtype: "f32", shape: [...x.shape.slice(0, -1), rows] }];
  },
  reference({ inputs: [x, weight, bias], outputs: [out] }) {
    const [height, bytes] = weight!.shape as [number, number];
    const rows = x!.data as Uint8Array, weights = weight!.data as Uint8Array;
    const target = out!.data as Float32Array;
    const count = height === 0 ? 0 : target.length / height;
    for (let m = 0; m < count; m++) {
      for (let n = 0; n < height; n++) {
        target[m * height + n] = multiplyLf8Rows(
          rows.subarray(m * bytes, (m + 1) * bytes),
          weights.subarray(n * bytes, (n + 1) * bytes),
        ) + (bias ? getElement(bias, n) : 0);
      }
    }
  },
  cases: (random) =>
    ([[0, 5, 1], [1, 1, 1], [1, 33, 3], [3, 16, 2], [7, 50, 1]] as const).map((size) =>
      lf8Case(random, size[0], size[1], size[2])
    ),
});

function lf8Case(random: CaseRandom, rows: number, outputs: number, groups: number): OpCase {
  const columns = groups * LF8_GROUP, bytes = lf8RowBytes(columns);
  const x = new Uint8Array(rows * bytes), weight = new Uint8Array(outputs * bytes);
  for (let m = 0; m < rows; m++) quantizeLf8Row(random.normal(columns), x.subarray(m * bytes));
  getFormat("LF8").encode!(random.normal(outputs * columns), weight);
  return {
    name: `[${rows}, ${columns}] · [${outputs}, ${columns}]ᵀ`,
    inputs: [
      { role: "input", dtype: "u8", shape: [ROWS, bytes], data: x },
      { role: "input", dtype: "u8", shape: [outputs, bytes], data: weight },
      outputs % 2 ? random.weight("F32", [outputs]) : undefined,
    ],
    bindings: { M: rows },
  };
}
