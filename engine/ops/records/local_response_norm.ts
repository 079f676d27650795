// local_response_norm: x / (bias + alpha / size · Σ x²)^beta, the sum over `size` neighbouring
// channels.
//
// Krizhevsky, Sutskever & Hinton 2012, section 3.3.

import { integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS, numbersOf } from "../host_numbers.ts";
import { elementCount, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x [N, C, …]) → [N, C, …]. */
export const localResponseNorm: OpRecord = defineOp({
  name: "local_response_norm",
  summary: "x over a power of the squares of neighbouring channels",
  attributes: { size: integer(1), alpha: number(), beta: number(), bias: number() },
  infer(inputs) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 3 });
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes }) {
    const { size, alpha, beta, bias } = attributes;
    const channels = x!.shape[1]!, places = elementCount(x!.shape.slice(2));
    const values = numbersOf(x!);
    const before = Math.floor((size - 1) / 2), after = Math.ceil((size - 1) / 2);
    for (let i = 0; i < values.length; i++) {
      const c = Math.floor(i / places) % channels;
      let squares = 0;
      for (let d = Math.max(-before, -c); d <= Math.min(after, channels - 1 - c); d++) {
        squares += values[i + d * places]! ** 2;
      }
      setElement(out!, { index: i, value: values[i]! / (bias + alpha / size * squares) ** beta });
    }
  },
  cases: (random) =>
    [1, 2, 3, 5].map((size) => ({
      inputs: [random.input([2, 4, 3, 5])],
      attributes: { size, alpha: 1e-2, beta: 0.75, bias: 1 },
    })),
});
