// gather_elements: each element of the result chooses its place along one axis (NumPy's
// take_along_axis).

import { integer } from "../attributes.ts";
import { INDEX_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { compare, formatDim } from "../../graph/dim/mod.ts";
import { axisOf, stridesOf } from "../host_numbers.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { elementsOf, walk } from "../strided.ts";
import { indicesOf } from "./gather.ts";

/** (x T[…], indices i32/i64[…] of the same rank) → T[shape of indices]. */
export const gatherElements: OpRecord = defineOp({
  name: "gather_elements",
  summary: "elements by index along an axis",
  attributes: { axis: integer(-(2 ** 31), 0) },
  movedInputs: [0],
  infer(inputs, attributes) {
    checkInputCount(inputs, 2);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    const indices = requireTyped(inputs, { index: 1, name: "indices" }, INDEX_INPUT);
    const along = axisOf(attributes.axis, x.shape.length);
    if (indices.shape.length !== x.shape.length) {
      throw new RangeError(`indices have ${indices.shape.length} dims, x has ${x.shape.length}`);
    }
    indices.shape.forEach((size, i) => {
      if (i === along || compare(size, x.shape[i]!) !== ">") return;
      throw new RangeError(
        `indices have ${formatDim(size)} elements along dim ${i}, x has ${formatDim(x.shape[i]!)}`,
      );
    });
    return [{ dtype: x.dtype, shape: indices.shape }];
  },
  reference({ inputs: [x, indices], outputs: [out], attributes }) {
    const axis = axisOf(attributes.axis, x!.shape.length);
    const strides = stridesOf(x!.shape), along = strides[axis]!;
    const picks = indicesOf(indices!, () => x!.shape[axis]!);
    const from = elementsOf(x!), to = elementsOf(out!);
    walk(out!.shape, {
      strides: [strides.with(axis, 0)],
      visit: (index, offsets) => {
        to[index] = from[offsets[0]! + picks[index]! * along];
      },
    });
  },
  cases: (random) => [
    {
      name: "64 bits",
      inputs: [random.typed("i64", [5, 6, 7]), random.typed("i64", [2, -3])],
      attributes: { axis: 0 },
    },
    ...[0, 1].map((axis) => ({
      inputs: [random.input([3, 3]), { ...random.indices([0, 1, 2, -1, 0, 1]), shape: [2, 3] }],
      attributes: { axis },
    })),
  ],
  tolerance: { ofLargest: 0, reason: "a copy" },
});
