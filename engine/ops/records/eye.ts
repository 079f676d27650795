// eye: a matrix with 1 on one diagonal and 0 elsewhere.

import { choice, dim, integer } from "../attributes.ts";
import { DATA_TYPES } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";

/** () → dtype[rows, columns]; diagonal `k` is above the main one if it is positive. */
export const eye: OpRecord = defineOp({
  name: "eye",
  summary: "1 on a diagonal, 0 elsewhere",
  attributes: {
    rows: dim(),
    columns: dim(),
    k: integer(-(2 ** 53), 0),
    dtype: choice(DATA_TYPES, "f32"),
  },
  infer(inputs, { rows, columns, dtype }) {
    checkInputCount(inputs, 0);
    return [{ dtype, shape: [rows, columns] }];
  },
  reference({ outputs: [out], attributes: { k } }) {
    const [rows, columns] = out!.shape as [number, number];
    for (let row = Math.max(0, -k); row < rows && row + k < columns; row++) {
      setElement(out!, { index: row * columns + row + k, value: 1 });
    }
  },
  cases: () => [
    ...[-1, 0, 2].map((k) => ({ inputs: [], attributes: { rows: 4, columns: 5, k } })),
    ...DATA_TYPES.map((dtype) => ({ inputs: [], attributes: { rows: 3, columns: 3, dtype } })),
  ],
  tolerance: { ofLargest: 0, reason: "zeros and ones" },
});
