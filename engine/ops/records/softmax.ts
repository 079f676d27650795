// softmax: exp(x - max) / sum along one axis.

import { integer } from "../attributes.ts";
import { elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { elementCount, getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x f32[…]) → f32[…]; a negative axis counts from the end. */
export const softmax: OpRecord = defineOp({
  name: "softmax",
  summary: "exp(x - max) / sum along an axis",
  attributes: { axis: integer(-8, -1) },
  infer(inputs, { axis }) {
    checkInputCount(inputs, 1);
    const { shape } = requireInput(inputs, { index: 0, name: "x", minRank: 1 });
    if (axis < -shape.length || axis >= shape.length) {
      throw new RangeError(`axis ${axis} is outside x, which has ${shape.length} dims`);
    }
    return [{ dtype: "f32", shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes }) {
    const { shape } = x!;
    const axis = attributes.axis < 0 ? attributes.axis + shape.length : attributes.axis;
    const size = shape[axis]!, stride = elementCount(shape.slice(axis + 1));
    for (let i = 0; i < x!.data.length; i++) {
      // The first element of each line along the axis does the whole line.
      if (Math.floor(i / stride) % size !== 0) continue;
      const line = Array.from({ length: size }, (_, j) => getElement(x!, i + j * stride));
      const largest = line.reduce((a, b) => Math.max(a, b), -Infinity);
      const total = line.reduce((sum, value) => sum + Math.exp(value - largest), 0);
      line.forEach((value, j) =>
        setElement(out!, { index: i + j * stride, value: Math.exp(value - largest) / total })
      );
    }
  },
  cases: (random) => [
    ...elementwiseCases(random, { inputs: 1 }),
    {
      name: "numbers whose powers are beyond float32",
      inputs: [{
        role: "input",
        dtype: "f32",
        shape: [2, 5],
        data: Float32Array.of(200, 199, 100, -200, 198, -1000, -1001, -999.5, -1200, -1000),
      }],
      attributes: { axis: -1 },
    },
    ...[-3, -2, 0, 1, 2].map((axis) => ({
      inputs: [random.input([3, 5, 7])],
      attributes: { axis },
    })),
    {
      name: "a line that a mask hides with the least number",
      inputs: [random.typed("f32", Array(5).fill(-3.4028234663852886e38))],
    },
  ],
});
