// clamped_glu: the bounded gate of gpt-oss. With g = min(gate, limit) and u = clamp(up, ±limit):
// y = g · sigmoid(alpha · g) · (u + 1). Bounds keep half-precision experts finite.

import { number } from "../attributes.ts";
import { elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { gluInput } from "./glu.ts";

/** (gate f32[…], up f32[…]) → f32[…]. */
export const clampedGlu: OpRecord = defineOp({
  name: "clamped_glu",
  summary: "g · sigmoid(alpha · g) · (u + 1) with bounded g and u",
  attributes: { limit: number(), alpha: number() },
  byRows: true,
  infer(inputs) {
    return [{ dtype: "f32", shape: gluInput(inputs).shape }];
  },
  reference({ inputs: [gate, up], outputs: [out], attributes: { limit, alpha } }) {
    for (let i = 0; i < gate!.data.length; i++) {
      const g = Math.min(getElement(gate!, i), limit);
      const u = Math.min(Math.max(getElement(up!, i), -limit), limit);
      setElement(out!, i, g / (1 + Math.exp(-alpha * g)) * (u + 1));
    }
  },
  cases: (random) =>
    elementwiseCases(random, 2, [{ limit: 7, alpha: 1.702 }, { limit: 0.5, alpha: 1 }]),
});
