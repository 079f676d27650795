// top_k: the k largest or smallest elements along an axis, with their indices, best first. Of equal
// elements the one with the lower index comes first. NaN is above all numbers.

import { choice, dim, flag, integer } from "../attributes.ts";
import { NUMBER_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { axisOf } from "../host_numbers.ts";
import { setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { aroundAxis, comparableOf, compareElements, elementsOf } from "../strided.ts";

/** (x T[…, N, …]) → values T[…, k, …], indices[…, k, …]. */
export const topK: OpRecord = defineOp({
  name: "top_k",
  summary: "the k largest or smallest elements along an axis and their indices",
  attributes: {
    k: dim(),
    axis: integer(-(2 ** 31), -1),
    largest: flag(true),
    index: choice(["i32", "i64"], "i64"),
  },
  infer(inputs, { k, axis, index }) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" }, NUMBER_INPUT);
    const shape = x.shape.with(axisOf(axis, x.shape.length), k);
    return [{ dtype: x.dtype, shape }, { dtype: index, shape }];
  },
  reference({ inputs: [x], outputs: [values, indices], attributes }) {
    const axis = axisOf(attributes.axis, x!.shape.length);
    const { outer, size, inner } = aroundAxis(x!.shape, axis);
    const k = values!.shape[axis]!;
    if (k > size) throw new RangeError(`Cannot take the top ${k} of ${size} elements`);
    const keys = comparableOf(x!), from = elementsOf(x!), to = elementsOf(values!);
    for (let line = 0; line < outer * inner; line++) {
      const first = Math.floor(line / inner), rest = line % inner;
      const at = (i: number) => (first * size + i) * inner + rest;
      // Sorting is stable.
      const order = Array.from({ length: size }, (_, i) => i).sort((a, b) =>
        compareElements(keys[at(a)]!, keys[at(b)]!) * (attributes.largest ? -1 : 1)
      );
      for (let i = 0; i < k; i++) {
        const target = (first * k + i) * inner + rest;
        to[target] = from[at(order[i]!)];
        setElement(indices!, { index: target, value: order[i]! });
      }
    }
  },
  cases: (random) => [
    ...[0, 1, -1].flatMap((axis) =>
      [true, false].map((largest) => ({
        inputs: [random.input([5, 6, 7])],
        attributes: { k: 3, axis, largest, index: "i32" },
      }))
    ),
    { name: "wide indices", inputs: [random.input([5, 6])], attributes: { k: 2, index: "i64" } },
  ],
  tolerance: { ofLargest: 0, reason: "a copy" },
});
