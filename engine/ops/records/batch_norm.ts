// batch_norm: (x - mean) / sqrt(variance + epsilon) · weight + bias with numbers given for each
// channel, which is dim 1. Passes fold it into the convolution before it.

import { number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS } from "../host_numbers.ts";
import { elementCount, getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";

/** (x [N, C, …], weight [C], bias [C], mean [C], variance [C]) → [N, C, …]; x [N] is one channel. */
export const batchNorm: OpRecord = defineOp({
  name: "batch_norm",
  summary: "x normalised by given means and variances of channels",
  attributes: { epsilon: number() },
  infer(inputs) {
    checkInputCount(inputs, 5);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 1 });
    for (const [i, name] of ["weight", "bias", "mean", "variance"].entries()) {
      const perChannel = requireInput(inputs, { index: i + 1, name, dtype: FLOATS, rank: 1 });
      requireEqual(perChannel.shape[0]!, {
        b: x.shape[1] ?? 1,
        what: `the channels of x and of the ${name}`,
      });
    }
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x, weight, bias, mean, variance], outputs: [out], attributes }) {
    const channels = x!.shape[1] ?? 1, places = elementCount(x!.shape.slice(2));
    for (let i = 0; i < x!.data.length; i++) {
      const c = Math.floor(i / places) % channels;
      const factor = getElement(weight!, c) /
        Math.sqrt(getElement(variance!, c) + attributes.epsilon);
      const centred = getElement(x!, i) - getElement(mean!, c);
      setElement(out!, { index: i, value: centred * factor + getElement(bias!, c) });
    }
  },
  cases: (random) =>
    [[2, 3, 7, 9], [1, 17, 5, 5], [3, 5, 33], [4, 6]].map((shape) => ({
      inputs: [
        random.input(shape),
        ...[1, 2, 3].map(() => random.weight("F32", [shape[1]!])),
        {
          role: "input",
          dtype: "f32",
          shape: [shape[1]!],
          data: random.normal(shape[1]!).map((v) => v * v),
        },
      ],
      attributes: { epsilon: 1e-5 },
    })),
});
