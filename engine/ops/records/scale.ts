// scale: every element times a constant.

import { number } from "../attributes.ts";
import { elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x f32[…]) → f32[…]; the factor is rounded to float32. */
export const scale: OpRecord = defineOp({
  name: "scale",
  summary: "x · factor",
  attributes: { factor: number() },
  elementwise: true,
  byRows: true,
  infer(inputs) {
    checkInputCount(inputs, 1);
    return [{ dtype: "f32", shape: requireInput(inputs, 0, "x").shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes }) {
    const factor = Math.fround(attributes.factor);
    for (let i = 0; i < x!.data.length; i++) setElement(out!, i, getElement(x!, i) * factor);
  },
  cases: (random) => elementwiseCases(random, 1, [{ factor: 0.125 }, { factor: -3.3 }]),
});
