// activation_q8: activation and quantize_q8 in one, so that the widest row of a layer is not stored as floats
// a second time. Made by a pass (engine/plan/passes/fuse_quantized.ts).

import { ACTIVATION_NAMES, activations } from "../activations.ts";
import { choice } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";
import { inferQ8, q8Sizes, quantizeGroups } from "./quantize_q8.ts";

/** (x f32[…, K]) → q8[…, K]. */
export const activationQ8: OpRecord = defineOp({
  name: "activation_q8",
  summary: "quantize_q8(activation(x))",
  attributes: { kind: choice(ACTIVATION_NAMES) },
  infer(inputs) {
    checkInputCount(inputs, 1);
    return [inferQ8(requireInput(inputs, 0, "x", { minRank: 1 }))];
  },
  reference({ inputs: [x], outputs: [out], attributes: { kind } }) {
    for (let i = 0; i < x!.data.length; i++) {
      setElement(out!, i, activations[kind](getElement(x!, i)));
    }
    quantizeGroups(out!, out!);
  },
  cases: (random) =>
    q8Sizes.flatMap(({ rows, width }) =>
      ACTIVATION_NAMES.map((kind) => ({
        name: `${kind}, [${rows}, ${width}]`,
        inputs: [random.input([ROWS, width], { M: rows })],
        attributes: { kind },
        bindings: { M: rows },
      }))
    ),
  tolerance: {
    ofLargest: 1 / 126,
    reason: "one 8-bit step where a rounding tie falls the other way",
  },
});
