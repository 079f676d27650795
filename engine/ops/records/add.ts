// add: elementwise sum with NumPy broadcasting.

import { broadcastElements } from "../broadcast.ts";
import { BROADCASTS, elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { equal } from "../../graph/dim/mod.ts";
import type { OpRecord } from "../op.ts";
import { rowCut } from "../row_cut.ts";
import { broadcastShapes, checkInputCount, requireInput } from "../shape_rules.ts";

/** (a f32[…], b f32[…]) → f32[broadcast]. */
export const add: OpRecord = defineOp({
  name: "add",
  summary: "a + b with NumPy broadcasting",
  attributes: {},
  elementwise: true,
  byRows: true,
  infer(inputs) {
    checkInputCount(inputs, 2);
    const a = requireInput(inputs, 0, "a"), b = requireInput(inputs, 1, "b");
    return [{ dtype: "f32", shape: broadcastShapes(a.shape, b.shape) }];
  },
  rowwise({ inputs, outputs: [y] }) {
    const cut = rowCut(y!.shape);
    const alike = inputs.every((value) =>
      value!.shape.length === y!.shape.length &&
      value!.shape.every((dim, i) => equal(dim, y!.shape[i]!))
    );
    return cut && alike ? { ...cut, inputs: [0, 1] } : undefined;
  },
  reference({ inputs: [a, b], outputs: [out] }) {
    broadcastElements(a!, b!, out!, (x, y) => x + y);
  },
  cases: (random) => [
    ...elementwiseCases(random, 2),
    ...BROADCASTS.map(([a, b]) => ({
      name: `[${a}] and [${b}]`,
      inputs: [random.input(a!), random.input(b!)],
    })),
  ],
});
