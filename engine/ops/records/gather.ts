// gather: slices of a tensor along an axis, chosen by indices of any shape (NumPy's take).

import { integer } from "../attributes.ts";
import { INDEX_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { axisOf } from "../host_numbers.ts";
import { getElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { aroundAxis } from "../strided.ts";

/** (x T[a…, N, b…], indices i32/i64[i…]) → T[a…, i…, b…]; a negative index counts from the end. */
export const gather: OpRecord = defineOp({
  name: "gather",
  summary: "slices along an axis by index",
  attributes: { axis: integer(-(2 ** 31), 0) },
  movedInputs: [0],
  infer(inputs, attributes) {
    checkInputCount(inputs, 2);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    const indices = requireTyped(inputs, { index: 1, name: "indices" }, INDEX_INPUT);
    const axis = axisOf(attributes.axis, x.shape.length);
    return [{ dtype: x.dtype, shape: x.shape.toSpliced(axis, 1, ...indices.shape) }];
  },
  reference({ inputs: [x, indices], outputs: [out], attributes }) {
    const { outer, size, inner } = aroundAxis(x!.shape, axisOf(attributes.axis, x!.shape.length));
    const from = x!.data as Uint8Array, to = out!.data as Uint8Array;
    const picks = indicesOf(indices!, () => size);
    for (let i = 0, at = 0; i < outer; i++) {
      for (const pick of picks) {
        const start = (i * size + pick) * inner;
        to.set(from.subarray(start, start + inner), at);
        at += inner;
      }
    }
  },
  cases: (random) =>
    [0, 1, 2].flatMap((axis) =>
      [[0], [2, -1, 0, 0], []].map((picks) => ({
        name: `axis ${axis}, [${picks}]`,
        inputs: [random.input([3, 4, 5]), random.indices(picks)],
        attributes: { axis },
      }))
    ),
  tolerance: { ofLargest: 0, reason: "a copy" },
});

/**
 * Indices counted from the front; index `i` is into `sizeAt(i)` elements.
 *
 * @throws {RangeError} If one is outside.
 */
export function indicesOf(indices: HostTensor, sizeAt: (i: number) => number): Int32Array {
  return Int32Array.from({ length: indices.data.length }, (_, i) => {
    const index = getElement(indices, i), size = sizeAt(i);
    if (index >= -size && index < size) return index < 0 ? index + size : index;
    throw new RangeError(`Cannot use index ${index}: there are ${size} elements`);
  });
}
