// rms_norm: x / sqrt(mean(x²) + epsilon) · (base + weight) over the last dim. Gemma stores weights
// around 0 and sets base to 1.

import { number } from "../attributes.ts";
import { CASE_WIDTHS, elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import { rowByRow } from "../row_cut.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** (x f32[…, D], weight [D]?) → f32[…, D]. */
export const rmsNorm: OpRecord = defineOp({
  name: "rms_norm",
  summary: "x / sqrt(mean(x²) + epsilon) · (base + weight) over the last dim",
  attributes: { epsilon: number(), base: number(0) },
  byRows: true,
  infer(inputs) {
    return [{ dtype: "f32", shape: rmsNormInput(inputs).shape }];
  },
  rowwise: rowByRow,
  reference({ inputs: [x, weight], outputs: [out], attributes }) {
    rmsNormRows(x!, weight, out!, attributes);
  },
  cases: (random) => [
    ...elementwiseCases(random, 1, [{ epsilon: 1e-5 }]),
    ...CASE_WIDTHS.map((width) => ({
      name: `width ${width}, weight, base ${width % 2}`,
      inputs: [random.input([2, 3, width]), random.weight("F32", [width])],
      attributes: { epsilon: 1e-6, base: width % 2 },
    })),
  ],
});

/** Checks the inputs of rms_norm and of its fused forms; returns x. */
export function rmsNormInput(inputs: readonly (TensorType | undefined)[]): TensorType {
  checkInputCount(inputs, 2);
  const x = requireInput(inputs, 0, "x", { minRank: 1 });
  const weight = optionalInput(inputs, 1, "weight", { rank: 1 });
  if (weight) requireEqual(lastDim(x), weight.shape[0]!, "the last dim of x and the weight");
  return x;
}

/** The definition, for the fused forms too. */
export function rmsNormRows(
  x: HostTensor,
  weight: HostTensor | undefined,
  out: HostTensor,
  { epsilon, base }: { readonly epsilon: number; readonly base: number },
): void {
  const width = x.shape.at(-1)!;
  for (let row = 0; row + width <= x.data.length && width > 0; row += width) {
    let squares = 0;
    for (let i = 0; i < width; i++) squares += getElement(x, row + i) ** 2;
    const factor = 1 / Math.sqrt(squares / width + epsilon);
    for (let i = 0; i < width; i++) {
      const gain = weight ? base + getElement(weight, i) : 1;
      setElement(out, row + i, getElement(x, row + i) * factor * gain);
    }
  }
}
