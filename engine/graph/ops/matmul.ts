// matmul: rows of x times the rows of a weight matrix, float activations and exactly the stored
// weights. The weight is [N, K] as files store it, so each output is a dot of two contiguous rows.

import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord, TensorType } from "../op.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** (x f32[…, K], weight [N, K], bias [N]?) → f32[…, N]. */
export const matmul: OpRecord = defineOp({
  name: "matmul",
  summary: "x · weightᵀ + bias with float32 activations",
  attributes: {},
  infer(inputs) {
    return inferMatmul(inputs, requireInput(inputs, 0, "x", { minRank: 1 }));
  },
  reference({ inputs: [x, weight, bias], outputs: [out] }) {
    matmulRows(x!, weight!, bias, out!);
  },
  kernels: { wasm: [], gpu: [] },
});

/** Shape rule of both matmuls; `x` is input 0. */
export function inferMatmul(
  inputs: readonly (TensorType | undefined)[],
  x: TensorType,
): TensorType[] {
  checkInputCount(inputs, 3);
  const weight = requireInput(inputs, 1, "weight", { rank: 2 });
  const bias = optionalInput(inputs, 2, "bias", { rank: 1 });
  requireEqual(lastDim(x), weight.shape[1]!, "the columns of x and of the weight");
  const rows = weight.shape[0]!;
  if (bias) requireEqual(rows, bias.shape[0]!, "the rows of the weight and the bias");
  return [{ dtype: "f32", shape: [...x.shape.slice(0, -1), rows] }];
}

/** The definition, for both matmuls. */
export function matmulRows(
  x: HostTensor,
  weight: HostTensor,
  bias: HostTensor | undefined,
  out: HostTensor,
): void {
  const [height, width] = weight.shape as [number, number];
  const rows = height === 0 ? 0 : out.data.length / height;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < height; column++) {
      let sum = bias ? getElement(bias, column) : 0;
      for (let i = 0; i < width; i++) {
        sum += getElement(x, row * width + i) * getElement(weight, column * width + i);
      }
      setElement(out, row * height + column, sum);
    }
  }
}
