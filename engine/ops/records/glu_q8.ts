// glu_q8: glu and quantize_q8 in one, so that the widest row of a layer is never stored as floats.
// Made by a pass (engine/plan/passes.ts).

import { ACTIVATION_NAMES } from "../activations.ts";
import { choice } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { gluElements, gluInput } from "./glu.ts";
import { inferQ8, q8Sizes, quantizeGroups } from "./quantize_q8.ts";

/** (gate f32[…, K], up f32[…, K]) → q8[…, K]. */
export const gluQ8: OpRecord = defineOp({
  name: "glu_q8",
  summary: "quantize_q8(activation(gate) · up)",
  attributes: { activation: choice(ACTIVATION_NAMES) },
  infer(inputs) {
    return [inferQ8(gluInput(inputs))];
  },
  reference({ inputs: [gate, up], outputs: [out], attributes: { activation } }) {
    gluElements(gate!, up!, out!, activation);
    quantizeGroups(out!, out!);
  },
  cases: (random) =>
    q8Sizes.flatMap(({ rows, width }) =>
      ACTIVATION_NAMES.map((activation) => ({
        name: `${activation}, [${rows}, ${width}]`,
        inputs: [0, 1].map(() => random.input([ROWS, width], { M: rows })),
        attributes: { activation },
        bindings: { M: rows },
      }))
    ),
  tolerance: {
    ofLargest: 1 / 126,
    reason: "one 8-bit step where a rounding tie falls the other way",
  },
});
