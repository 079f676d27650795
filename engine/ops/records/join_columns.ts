// join_columns: the rows of two tensors, one behind the other along the last dim.

import { CASE_ROWS, ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { add } from "../../graph/dim/mod.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, lastDim, requireEqual, requireInput } from "../shape_rules.ts";

/** (a f32[…, A], b f32[…, B]) → f32[…, A + B]. */
export const joinColumns: OpRecord = defineOp({
  name: "join_columns",
  summary: "rows of a, continued by those of b",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 2);
    const a = requireInput(inputs, { index: 0, name: "a", minRank: 1 });
    const b = requireInput(inputs, { index: 1, name: "b", rank: a.shape.length });
    a.shape.slice(0, -1).forEach((dim, i) =>
      requireEqual(dim, { b: b.shape[i]!, what: "the rows of a and b" })
    );
    return [{ dtype: "f32", shape: [...a.shape.slice(0, -1), add(lastDim(a), lastDim(b))] }];
  },
  reference({ inputs: [a, b], outputs: [out] }) {
    const left = a!.shape.at(-1)!, right = b!.shape.at(-1)!, width = left + right;
    for (let i = 0; i < out!.data.length; i++) {
      const row = Math.floor(i / width), column = i % width;
      const value = column < left
        ? getElement(a!, row * left + column)
        : getElement(b!, row * right + column - left);
      setElement(out!, { index: i, value });
    }
  },
  cases: (random) =>
    [[1, 1], [16, 8], [5, 3], [33, 64]].flatMap(([left, right]) =>
      CASE_ROWS.map((rows) => ({
        inputs: [
          random.input([ROWS, 3, left!], { M: rows }),
          random.input([ROWS, 3, right!], { M: rows }),
        ],
        bindings: { M: rows },
      }))
    ),
  tolerance: { ofLargest: 0, reason: "a copy" },
});
