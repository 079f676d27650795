// rms_norm_q8: rms_norm and quantize_q8 in one, so that the normalised row is never stored as floats.
// Made by a pass (engine/plan/passes.ts).

import { number } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { rowByRow } from "../row_cut.ts";
import { inferQ8, q8Sizes, quantizeGroups } from "./quantize_q8.ts";
import { rmsNormInput, rmsNormRows } from "./rms_norm.ts";

/** (x f32[…, K], weight [K]?) → q8[…, K]. */
export const rmsNormQ8: OpRecord = defineOp({
  name: "rms_norm_q8",
  summary: "quantize_q8(rms_norm(x, weight))",
  attributes: { epsilon: number(), base: number(0) },
  infer(inputs) {
    return [inferQ8(rmsNormInput(inputs))];
  },
  rowwise: rowByRow,
  reference({ inputs: [x, weight], outputs: [out], attributes }) {
    rmsNormRows(x!, weight, out!, attributes);
    quantizeGroups(out!, out!);
  },
  cases: (random) =>
    q8Sizes.map(({ rows, width }) => ({
      name: `[${rows}, ${width}]${width === 64 ? "" : ", weight"}`,
      inputs: [
        random.input([ROWS, width], { M: rows }),
        width === 64 ? undefined : random.weight("F32", [width]),
      ],
      attributes: { epsilon: 1e-5, base: width === 96 ? 1 : 0 },
      bindings: { M: rows },
    })),
  tolerance: {
    ofLargest: 1 / 126,
    reason: "one 8-bit step where a rounding tie falls the other way",
  },
});
