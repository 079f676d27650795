// mul: elementwise product with NumPy broadcasting.

import { broadcastElements } from "../broadcast.ts";
import { BROADCASTS, elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { broadcastShapes, checkInputCount, requireInput } from "../shape_rules.ts";

/** (a f32[…], b f32[…]) → f32[broadcast]. */
export const mul: OpRecord = defineOp({
  name: "mul",
  summary: "a · b with NumPy broadcasting",
  attributes: {},
  elementwise: true,
  byRows: true,
  infer(inputs) {
    checkInputCount(inputs, 2);
    const a = requireInput(inputs, 0, "a"), b = requireInput(inputs, 1, "b");
    return [{ dtype: "f32", shape: broadcastShapes(a.shape, b.shape) }];
  },
  reference({ inputs: [a, b], outputs: [out] }) {
    broadcastElements(a!, b!, out!, (x, y) => x * y);
  },
  cases: (random) => [
    ...elementwiseCases(random, 2),
    ...BROADCASTS.map(([a, b]) => ({
      name: `[${a}] and [${b}]`,
      inputs: [random.input(a!), random.input(b!)],
    })),
  ],
});
