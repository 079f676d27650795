// range: an arithmetic progression. Its length is a dim of the node, because a shape cannot depend on
// numbers that only a run knows.

import { dim } from "../attributes.ts";
import { isWide, NUMBER_INPUT, requireSameType, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";

/** (start T[], delta T[]) → T[size]: start, start + delta, start + 2 delta, … */
export const range: OpRecord = defineOp({
  name: "range",
  summary: "an arithmetic progression",
  attributes: { size: dim() },
  infer(inputs, { size }) {
    checkInputCount(inputs, 2);
    const start = requireTyped(inputs, { index: 0, name: "start" }, NUMBER_INPUT);
    requireSameType(start, {
      b: requireTyped(inputs, { index: 1, name: "delta" }, NUMBER_INPUT),
      what: "start and delta",
    });
    return [{ dtype: start.dtype, shape: [size] }];
  },
  reference({ inputs: [start, delta], outputs: [out] }) {
    if (isWide(out!.dtype)) {
      const [first] = start!.data as BigInt64Array, [step] = delta!.data as BigInt64Array;
      const to = out!.data as BigInt64Array;
      for (let i = 0; i < to.length; i++) to[i] = first! + BigInt(i) * step!;
      return;
    }
    const first = getElement(start!, 0), step = getElement(delta!, 0);
    for (let i = 0; i < out!.data.length; i++) {
      setElement(out!, { index: i, value: first + i * step });
    }
  },
  cases: (random) =>
    [1, 7, 33].map((size) => ({
      inputs: [random.input([]), random.input([])],
      attributes: { size },
    })),
});
