// lp_normalize: x over its p-norm along an axis; a line of zeros stays 0.

import { integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { axisOf, FLOATS } from "../host_numbers.ts";
import { elementCount, getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x […]) → […]. */
export const lpNormalize: OpRecord = defineOp({
  name: "lp_normalize",
  summary: "x over its p-norm along an axis",
  attributes: { axis: integer(-64, -1), p: integer(1, 2) },
  infer(inputs, { axis }) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 1 });
    axisOf(axis, x.shape.length);
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { axis, p } }) {
    const at = axisOf(axis, x!.shape.length);
    const size = x!.shape[at]!, stride = elementCount(x!.shape.slice(at + 1));
    for (let i = 0; i < x!.data.length; i++) {
      // The first element of each line does the whole line.
      if (Math.floor(i / stride) % size !== 0) continue;
      let sum = 0;
      for (let j = 0; j < size; j++) sum += Math.abs(getElement(x!, i + j * stride)) ** p;
      const norm = sum ** (1 / p);
      for (let j = 0; j < size; j++) {
        const value = getElement(x!, i + j * stride);
        setElement(out!, { index: i + j * stride, value: norm === 0 ? 0 : value / norm });
      }
    }
  },
  cases: (random) =>
    [1, 2].flatMap((p) =>
      [-1, 0, 1].map((axis) => ({ inputs: [random.input([3, 5, 7])], attributes: { axis, p } }))
    ),
});
