// layer_norm: (x - mean) / sqrt(variance + epsilon) · weight + bias over the last dim; the variance is
// the biased one.

import { number } from "../attributes.ts";
import { CASE_WIDTHS, elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { rowByRow } from "../row_cut.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** (x f32[…, D], weight [D]?, bias [D]?) → f32[…, D]. */
export const layerNorm: OpRecord = defineOp({
  name: "layer_norm",
  summary: "(x - mean) / sqrt(variance + epsilon) · weight + bias over the last dim",
  attributes: { epsilon: number() },
  byRows: true,
  infer(inputs) {
    checkInputCount(inputs, 3);
    const x = requireInput(inputs, 0, "x", { minRank: 1 });
    const weight = optionalInput(inputs, 1, "weight", { rank: 1 });
    const bias = optionalInput(inputs, 2, "bias", { rank: 1 });
    if (weight) requireEqual(lastDim(x), weight.shape[0]!, "the last dim of x and the weight");
    if (bias) requireEqual(lastDim(x), bias.shape[0]!, "the last dim of x and the bias");
    return [{ dtype: "f32", shape: x.shape }];
  },
  rowwise: rowByRow,
  reference({ inputs: [x, weight, bias], outputs: [out], attributes }) {
    const width = x!.shape.at(-1)!;
    for (let row = 0; row + width <= x!.data.length && width > 0; row += width) {
      let sum = 0;
      for (let i = 0; i < width; i++) sum += getElement(x!, row + i);
      const mean = sum / width;
      let squares = 0;
      for (let i = 0; i < width; i++) squares += (getElement(x!, row + i) - mean) ** 2;
      const factor = 1 / Math.sqrt(squares / width + attributes.epsilon);
      for (let i = 0; i < width; i++) {
        const normal = (getElement(x!, row + i) - mean) * factor;
        const gain = weight ? getElement(weight, i) : 1;
        setElement(out!, row + i, normal * gain + (bias ? getElement(bias, i) : 0));
      }
    }
  },
  cases: (random) => [
    ...elementwiseCases(random, 1, [{ epsilon: 1e-5 }]),
    ...CASE_WIDTHS.map((width) => ({
      name: `width ${width}, weight${width % 2 ? ", bias" : ""}`,
      inputs: [
        random.input([3, width]),
        random.weight("F32", [width]),
        width % 2 ? random.weight("F16", [width]) : undefined,
      ],
      attributes: { epsilon: 1e-5 },
    })),
  ],
});
