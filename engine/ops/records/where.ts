// where: elements of one tensor where a condition holds, of another where not.

import { requireSameType, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { broadcastShapes, checkInputCount, requireInput } from "../shape_rules.ts";
import { broadcastStrides, elementsOf, walk } from "../strided.ts";

/** (condition bool[…], a T[…], b T[…]) → T[broadcast]. */
export const where: OpRecord = defineOp({
  name: "where",
  summary: "a where a condition holds, else b",
  attributes: {},
  elementwise: true,
  infer(inputs) {
    checkInputCount(inputs, 3);
    const condition = requireInput(inputs, { index: 0, name: "condition", dtype: "bool" });
    const a = requireTyped(inputs, { index: 1, name: "a" }),
      b = requireTyped(inputs, { index: 2, name: "b" });
    requireSameType(a, { b, what: "a and b" });
    const shape = broadcastShapes(condition.shape, broadcastShapes(a.shape, b.shape));
    return [{ dtype: a.dtype, shape }];
  },
  reference({ inputs: [condition, a, b], outputs: [out] }) {
    const holds = elementsOf(condition!), to = elementsOf(out!);
    const x = elementsOf(a!), y = elementsOf(b!);
    const strides = [condition!, a!, b!].map(({ shape }) => broadcastStrides(shape, out!.shape));
    walk(out!.shape, {
      strides,
      visit: (index, offsets) => {
        to[index] = holds[offsets[0]!] ? x[offsets[1]!] : y[offsets[2]!];
      },
    });
  },
  cases: (random) => [
    ...[[[5, 33], [5, 33], [5, 33]], [[33], [5, 33], [1]], [[5, 1], [33], [1, 33]], [[1], [], [7]]]
      .map(([c, a, b]) => ({
        name: `[${c}] of [${a}] and [${b}]`,
        inputs: [random.truths(c!), random.input(a!), random.input(b!)],
      })),
    ...(["i64", "u64", "f64", "i32", "u16", "i8", "bool"] as const).map((dtype) => ({
      name: `elements of ${dtype}`,
      inputs: [random.truths([5]), random.typed(dtype, [1, 0, 1, 1, 0]), random.typed(dtype, [0])],
    })),
  ],
  tolerance: { ofLargest: 0, reason: "a copy" },
});
