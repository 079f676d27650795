// weighted_sum: the results of the chosen experts of a row, summed by their weights.

import { CASE_ROWS, CASE_WIDTHS, ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";

/** (x f32[M, k, D], weights f32[M, k]) → f32[M, D]. */
export const weightedSum: OpRecord = defineOp({
  name: "weighted_sum",
  summary: "Σ weights[m, i] · x[m, i]",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 2);
    const x = requireInput(inputs, { index: 0, name: "x", rank: 3 });
    const weights = requireInput(inputs, { index: 1, name: "weights", rank: 2 });
    requireEqual(x.shape[0]!, { b: weights.shape[0]!, what: "the rows of x and of the weights" });
    requireEqual(x.shape[1]!, {
      b: weights.shape[1]!,
      what: "the items of a row of x and of the weights",
    });
    return [{ dtype: "f32", shape: [x.shape[0]!, x.shape[2]!] }];
  },
  reference({ inputs: [x, weights], outputs: [out] }) {
    const [rows, count, width] = x!.shape as [number, number, number];
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < width; column++) {
        let sum = 0;
        for (let i = 0; i < count; i++) {
          const at = row * count + i;
          sum += getElement(weights!, at) * getElement(x!, at * width + column);
        }
        setElement(out!, { index: row * width + column, value: sum });
      }
    }
  },
  cases: (random) =>
    [
      ...CASE_WIDTHS.map((width) => [3, 2, width]),
      ...CASE_ROWS.map((rows) => [rows, 5, 40]),
    ].map(([rows, count, width]) => ({
      inputs: [
        random.input([ROWS, count!, width!], { M: rows! }),
        random.input([ROWS, count!], { M: rows! }),
      ],
      bindings: { M: rows! },
    })),
});
