// one_hot: a new axis along which one place, given by an index, holds one value and all others another.

import { dim, integer } from "../attributes.ts";
import { NUMBER_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { axisOf } from "../host_numbers.ts";
import { getElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual } from "../shape_rules.ts";
import { aroundAxis, elementsOf } from "../strided.ts";

/**
 * (indices N[…], values T[2]) → T[…, depth, …] with the new axis at `axis`; values are [off, on]. An
 * index from -depth to -1 counts from the end, and one outside gives a line of the off value.
 */
export const oneHot: OpRecord = defineOp({
  name: "one_hot",
  summary: "one place of a new axis set, all others not",
  attributes: { depth: dim(), axis: integer(-(2 ** 31), -1) },
  infer(inputs, { depth, axis }) {
    checkInputCount(inputs, 2);
    const { shape } = requireTyped(inputs, { index: 0, name: "indices" }, NUMBER_INPUT);
    const values = requireTyped(inputs, { index: 1, name: "values" });
    requireEqual(values.shape[0] ?? 1, { b: 2, what: "the number of values and 2" });
    const at = axisOf(axis, shape.length + 1);
    return [{ dtype: values.dtype, shape: shape.toSpliced(at, 0, depth) }];
  },
  reference({ inputs: [indices, values], outputs: [out], attributes: { axis } }) {
    const at = axisOf(axis, out!.shape.length);
    const { outer, size, inner } = aroundAxis(out!.shape, at);
    const { 0: off, 1: on } = elementsOf(values!), to = elementsOf(out!);
    for (let i = 0; i < out!.data.length; i++) to[i] = off;
    for (let line = 0; line < outer * inner; line++) {
      // An index of a float type may have a fraction, which is cut.
      const index = Math.trunc(getElement(indices!, line));
      if (index < -size || index >= size) continue;
      const place = index < 0 ? index + size : index;
      to[(Math.floor(line / inner) * size + place) * inner + line % inner] = on;
    }
  },
  cases: (random) =>
    [0, 1, -1].flatMap((axis) =>
      (["i32", "i64", "f32"] as const).map((dtype) => ({
        inputs: [random.typed(dtype, [0, 3, -1, 4, 9, -5, -6]), random.input([2])],
        attributes: { depth: 5, axis },
      }))
    ),
  tolerance: { ofLargest: 0, reason: "a copy" },
});
