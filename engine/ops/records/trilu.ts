// trilu: the upper or lower triangle of matrices; the rest becomes 0.

import { flag, integer } from "../attributes.ts";
import { requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import type { CaseInput, OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { elementsOf } from "../strided.ts";

/** (x T[…, R, C]) → T[…, R, C]; diagonal `k` and what is above (upper) or below it stays. */
export const trilu: OpRecord = defineOp({
  name: "trilu",
  summary: "the upper or lower triangle of matrices",
  attributes: { upper: flag(true), k: integer(-(2 ** 53), 0) },
  infer(inputs) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    if (x.shape.length < 2) throw new RangeError(`x has ${x.shape.length} dims: at least 2`);
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { upper, k } }) {
    const [rows, columns] = x!.shape.slice(-2) as [number, number];
    const from = elementsOf(x!), to = elementsOf(out!);
    for (let i = 0; i < x!.data.length; i++) {
      const diagonal = i % columns - Math.floor(i / columns) % rows;
      if (upper ? diagonal >= k : diagonal <= k) to[i] = from[i];
    }
  },
  cases: (random) => [
    ...[true, false].flatMap((upper) =>
      [-2, 0, 1].map((k) => ({ inputs: [random.input([2, 4, 5])], attributes: { upper, k } }))
    ),
    ...(["i64", "u8"] as const).map((dtype) => ({
      inputs: [{ ...random.typed(dtype, [1, 2, 3, 4, 5, 6]), shape: [3, 2] } as CaseInput],
      attributes: { upper: true, k: 0 },
    })),
  ],
  tolerance: { ofLargest: 0, reason: "a copy" },
});
