// glu_halves_q8: glu_halves and quantize_q8 in one. Made by a pass (engine/plan/passes/fuse_gated.ts).

import { ACTIVATION_NAMES, activations } from "../activations.ts";
import { choice } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { gluOfHalves, halfOf, halvesCases } from "./glu_halves.ts";
import { inferQ8, quantizeGroups } from "./quantize_q8.ts";

/** (x f32[…, 2F]) → q8[…, F]. */
export const gluHalvesQ8: OpRecord = defineOp({
  name: "glu_halves_q8",
  summary: "quantize_q8(activation(first half) · second half of each row)",
  attributes: { activation: choice(ACTIVATION_NAMES) },
  infer: (inputs) => [inferQ8(halfOf(inputs))],
  reference({ inputs: [x], outputs: [out], attributes: { activation } }) {
    gluOfHalves(x!, out!, activations[activation]);
    quantizeGroups(out!, out!);
  },
  cases: (random) => halvesCases(random, [32, 96, 128]),
  tolerance: {
    ofLargest: 1 / 126,
    reason: "one 8-bit step where a rounding tie falls the other way",
  },
});
