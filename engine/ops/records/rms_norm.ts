// rms_norm: x / sqrt(mean(x²) + epsilon) · (base + weight) over the last dim. Gemma stores weights
// around 0 and sets base to 1. The result may be 8-bit rows, so that it is never stored as floats.

import { number } from "../attributes.ts";
import { CASE_WIDTHS, elementwiseCases, ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import { Q8_STEP, q8Sizes, quantizeGroups, RESULT_TYPE, resultOf } from "../q8_rows.ts";
import { rowByRow } from "../row_cut.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** (x f32[…, D], weight [D]?) → f32 or q8[…, D]. */
export const rmsNorm: OpRecord = defineOp({
  name: "rms_norm",
  summary: "x / sqrt(mean(x²) + epsilon) · (base + weight) over the last dim",
  attributes: { epsilon: number(), base: number(0), to: RESULT_TYPE },
  byRows: true,
  infer(inputs, { to }) {
    checkInputCount(inputs, 2);
    const x = requireInput(inputs, 0, "x", { minRank: 1 });
    checkGain(x, optionalInput(inputs, 1, "weight", { rank: 1 }));
    return [resultOf(x, to)];
  },
  rowwise: rowByRow,
  reference({ inputs: [x, weight], outputs: [out], attributes }) {
    rmsNormRows(x!, weight, out!, attributes);
    if (attributes.to === "q8") quantizeGroups(out!, out!);
  },
  cases: (random) => [
    ...elementwiseCases(random, 1, [{ epsilon: 1e-5 }]),
    ...CASE_WIDTHS.map((width) => ({
      name: `width ${width}, weight, base ${width % 2}`,
      inputs: [random.input([2, 3, width]), random.weight("F32", [width])],
      attributes: { epsilon: 1e-6, base: width % 2 },
    })),
    ...q8Sizes.map(({ rows, width }) => ({
      name: `[${rows}, ${width}]${width === 64 ? "" : ", weight"}, in 8 bit`,
      inputs: [
        random.input([ROWS, width], { M: rows }),
        width === 64 ? undefined : random.weight("F32", [width]),
      ],
      attributes: { epsilon: 1e-5, base: width === 96 ? 1 : 0, to: "q8" },
      bindings: { M: rows },
      tolerance: Q8_STEP,
    })),
  ],
});

/** Checks the weight of a norm of `x`. */
export function checkGain(x: TensorType, weight: TensorType | undefined): void {
  if (weight) requireEqual(lastDim(x), weight.shape[0]!, "the last dim of x and the weight");
}

/** The definition, for the ops too that norm their input. */
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
