// rms_norm_q8: rms_norm and quantize_q8 in one, so that the normalised row is never stored as floats.
// Made by a pass (engine/plan/passes.ts).

import { number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { inferQ8, quantizeGroups } from "./quantize_q8.ts";
import { rmsNormInput, rmsNormRows } from "./rms_norm.ts";

/** (x f32[…, K], weight [K]?) → q8[…, K]. */
export const rmsNormQ8: OpRecord = defineOp({
  name: "rms_norm_q8",
  summary: "quantize_q8(rms_norm(x, weight))",
  attributes: { epsilon: number(), base: number(0) },
  infer(inputs) {
    return [inferQ8(rmsNormInput(inputs))];
  },
  reference({ inputs: [x, weight], outputs: [out], attributes }) {
    rmsNormRows(x!, weight, out!, attributes);
    quantizeGroups(out!, out!);
  },
  kernels: { wasm: [], gpu: [] },
});
