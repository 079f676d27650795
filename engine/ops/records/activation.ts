// activation: one function on every element.

import { ACTIVATION_NAMES, activations } from "../activations.ts";
import { choice } from "../attributes.ts";
import { elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x f32[…]) → f32[…]. */
export const activation: OpRecord = defineOp({
  name: "activation",
  summary: "an activation function on every element",
  attributes: { kind: choice(ACTIVATION_NAMES) },
  elementwise: true,
  byRows: true,
  infer(inputs) {
    checkInputCount(inputs, 1);
    return [{ dtype: "f32", shape: requireInput(inputs, 0, "x").shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { kind } }) {
    for (let i = 0; i < x!.data.length; i++) {
      setElement(out!, i, activations[kind](getElement(x!, i)));
    }
  },
  cases: (random) => elementwiseCases(random, 1, ACTIVATION_NAMES.map((kind) => ({ kind }))),
});
