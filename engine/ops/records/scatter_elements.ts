// scatter_elements: a copy of a tensor in which single elements are replaced, each at its own place
// along one axis.

import { choice, integer } from "../attributes.ts";
import { INDEX_INPUT, requireSameType, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { axisOf, stridesOf } from "../host_numbers.ts";
import type { OpRecord } from "../op.ts";
import { SCATTER_REDUCTIONS, scatterer } from "../reductions.ts";
import { checkInputCount, requireEqual } from "../shape_rules.ts";
import { walk } from "../strided.ts";
import { indicesOf } from "./gather.ts";

/** (x T[…], indices i32/i64[i…], updates T[i…]) → T[…]; later updates come after earlier ones. */
export const scatterElements: OpRecord = defineOp({
  name: "scatter_elements",
  summary: "a copy with elements replaced by index along an axis",
  attributes: { axis: integer(-(2 ** 31), 0), reduction: choice(SCATTER_REDUCTIONS, "none") },
  movedInputs: [0, 2],
  infer(inputs, attributes) {
    checkInputCount(inputs, 3);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    const indices = requireTyped(inputs, { index: 1, name: "indices" }, INDEX_INPUT);
    const updates = requireTyped(inputs, { index: 2, name: "updates" });
    requireSameType(x, { b: updates, what: "x and updates" });
    axisOf(attributes.axis, x.shape.length);
    if (indices.shape.length !== x.shape.length || updates.shape.length !== x.shape.length) {
      throw new RangeError("x, indices and updates must have equally many dims");
    }
    indices.shape.forEach((dim, i) =>
      requireEqual(dim, { b: updates.shape[i]!, what: "indices and updates" })
    );
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x, indices, updates], outputs: [out], attributes }) {
    const axis = axisOf(attributes.axis, x!.shape.length);
    const strides = stridesOf(x!.shape), along = strides[axis]!;
    const picks = indicesOf(indices!, () => x!.shape[axis]!);
    (out!.data as Uint8Array).set(x!.data as Uint8Array);
    const put = scatterer(attributes.reduction, { out: out!, updates: updates! });
    walk(indices!.shape, {
      strides: [strides.with(axis, 0)],
      visit: (index, offsets) => {
        put(offsets[0]! + picks[index]! * along, index);
      },
    });
  },
  cases: (random) =>
    SCATTER_REDUCTIONS.flatMap((reduction) =>
      [0, 1].map((axis) => ({
        inputs: [
          random.input([3, 3]),
          { ...random.indices([0, 1, 2, -2, 0, 1]), shape: [2, 3] },
          random.input([2, 3]),
        ],
        attributes: { axis, reduction },
      }))
    ),
});
