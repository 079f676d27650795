// all_reduce: the sum of what the devices of a group computed, each from its share of the columns of a matrix. Sums are in
// the order of the devices, so that they do not depend on who was first.

import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { requireEqual, requireInput } from "../shape_rules.ts";

/** (x0 f32[…], x1 f32[…], …) → f32[…]. */
export const allReduce: OpRecord = defineOp({
  name: "all_reduce",
  summary: "Σ x_i over the devices of a group",
  attributes: {},
  elementwise: true,
  byRows: true,
  infer(inputs) {
    const first = requireInput(inputs, { index: 0, name: "x0", dtype: "f32" });
    for (let i = 1; i < inputs.length; i++) {
      const next = requireInput(inputs, {
        index: i,
        name: `x${i}`,
        dtype: "f32",
        rank: first.shape.length,
      });
      next.shape.forEach((dim, at) =>
        requireEqual(dim, { b: first.shape[at]!, what: `dim ${at} of all inputs` })
      );
    }
    return [{ dtype: "f32", shape: first.shape }];
  },
  reference({ inputs, outputs: [out] }) {
    const to = out!.data as Float32Array;
    const parts = inputs.map((input) => input!.data as Float32Array);
    for (let i = 0; i < to.length; i++) {
      let sum = 0;
      for (const part of parts) sum += part[i]!;
      to[i] = sum;
    }
  },
  cases: (random) =>
    [1, 2, 3, 4].flatMap((count) =>
      [[0, 5], [1, 33], [7, 16]].map((shape) => ({
        name: `${count} parts of [${shape}]`,
        inputs: Array.from({ length: count }, () => random.input(shape)),
      }))
    ),
});
