// softcap: cap · tanh(x / cap), which keeps logits within ±cap (Gemma 2).

import { number } from "../attributes.ts";
import { elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x f32[…]) → f32[…], cap > 0. */
export const softcap: OpRecord = defineOp({
  name: "softcap",
  summary: "cap · tanh(x / cap)",
  attributes: { cap: number() },
  elementwise: true,
  byRows: true,
  infer(inputs, { cap }) {
    checkInputCount(inputs, 1);
    if (cap <= 0) throw new RangeError(`attribute "cap" must be above 0: it is ${cap}`);
    return [{ dtype: "f32", shape: requireInput(inputs, 0, "x").shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { cap } }) {
    for (let i = 0; i < x!.data.length; i++) {
      setElement(out!, i, cap * Math.tanh(getElement(x!, i) / cap));
    }
  },
  cases: (random) => elementwiseCases(random, 1, [{ cap: 30 }, { cap: 0.5 }]),
});
