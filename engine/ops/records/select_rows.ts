// select_rows: rows of an activation by index. It keeps the rows of a step whose logits are wanted, so
// that the last norm and the vocabulary matmul run on those only.

import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x f32[M, D], rows i32[L]) → f32[L, D]. */
export const selectRows: OpRecord = defineOp({
  name: "select_rows",
  summary: "rows of x by index",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 2);
    const x = requireInput(inputs, { index: 0, name: "x", rank: 2 });
    const rows = requireInput(inputs, { index: 1, name: "rows", dtype: "i32", rank: 1 });
    return [{ dtype: "f32", shape: [rows.shape[0]!, x.shape[1]!] }];
  },
  reference({ inputs: [x, rows], outputs: [out] }) {
    const [height, width] = x!.shape as [number, number];
    for (let row = 0; row < rows!.shape[0]!; row++) {
      const source = getElement(rows!, row);
      if (source < 0 || source >= height) {
        throw new RangeError(`Cannot select row ${source}: there are ${height}`);
      }
      for (let i = 0; i < width; i++) {
        setElement(out!, { index: row * width + i, value: getElement(x!, source * width + i) });
      }
    }
  },
  cases: (random) =>
    [[], [0], [6], [3, 3, 0], [0, 1, 2, 3, 4, 5, 6]].flatMap((rows) =>
      [1, 5, 16, 33].map((width) => ({
        name: `rows ${rows.join(" ")} of width ${width}`,
        inputs: [random.input([7, width]), random.indices(rows)],
      }))
    ),
  tolerance: { ofLargest: 0, reason: "a copy" },
});
