// reverse_sequence: the first elements along a time axis in reverse order, as many as each line of a
// batch axis says; what comes behind stays.

import { integer } from "../attributes.ts";
import { INDEX_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { axisOf, stridesOf } from "../host_numbers.ts";
import { getElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual } from "../shape_rules.ts";
import { elementsOf, walk } from "../strided.ts";

/** (x T[…], lengths i32/i64[B]) → T[…]. */
export const reverseSequence: OpRecord = defineOp({
  name: "reverse_sequence",
  summary: "beginnings along a time axis in reverse order",
  attributes: { batch_axis: integer(-(2 ** 31), 1), time_axis: integer(-(2 ** 31), 0) },
  infer(inputs, attributes) {
    checkInputCount(inputs, 2);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    const lengths = requireTyped(inputs, { index: 1, name: "lengths" }, INDEX_INPUT);
    const batch = axisOf(attributes.batch_axis, x.shape.length);
    if (batch === axisOf(attributes.time_axis, x.shape.length)) {
      throw new RangeError(`batch_axis and time_axis are both ${batch}: must differ`);
    }
    requireEqual(lengths.shape[0] ?? 1, { b: x.shape[batch]!, what: "lengths and the batch" });
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x, lengths], outputs: [out], attributes }) {
    const { shape } = x!;
    const batch = axisOf(attributes.batch_axis, shape.length);
    const time = axisOf(attributes.time_axis, shape.length);
    const strides = stridesOf(shape), from = elementsOf(x!), to = elementsOf(out!);
    const unit = (axis: number) => shape.map((_, at) => at === axis ? 1 : 0);
    walk(shape, {
      strides: [unit(batch), unit(time)],
      visit: (index, [line, at]) => {
        const length = getElement(lengths!, line!);
        if (length < 0 || length > shape[time]!) {
          throw new RangeError(`Cannot reverse ${length} of ${shape[time]} elements`);
        }
        const moved = at! < length ? length - 1 - 2 * at! : 0;
        to[index] = from[index + moved * strides[time]!];
      },
    });
  },
  cases: (random) => [
    { name: "time first", inputs: [random.input([4, 3, 2]), random.indices([4, 1, 2])] },
    {
      name: "batch first",
      inputs: [random.input([3, 4, 2]), random.indices([0, 3, 4])],
      attributes: { batch_axis: 0, time_axis: 1 },
    },
  ],
  tolerance: { ofLargest: 0, reason: "a copy" },
});
