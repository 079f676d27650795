// max_unpool: puts pooled elements back where max_pool found them; everything else is 0. Indices are
// flat over the unpooled shape, whatever larger shape is asked for.

import { dims } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS } from "../host_numbers.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";
import { evaluate } from "../../graph/dim/mod.ts";

/** (x [N, C, …], indices i32|i64[N, C, …]) → [shape]; indices count over `counted`. */
export const maxUnpool: OpRecord = defineOp({
  name: "max_unpool",
  summary: "pooled elements back at the places they came from",
  attributes: { shape: dims(), counted: dims() },
  infer(inputs, { shape, counted }) {
    checkInputCount(inputs, 2);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 3 });
    const rank = x.shape.length;
    const indices = requireInput(inputs, {
      index: 1,
      name: "indices",
      dtype: ["i32", "i64"],
      rank,
    });
    x.shape.forEach((dim, i) =>
      requireEqual(dim, { b: indices.shape[i]!, what: "the shapes of x and indices" })
    );
    if (shape.length !== rank || counted.length !== rank) {
      throw new RangeError(`shape and counted must have ${rank} dims`);
    }
    return [{ dtype: x.dtype, shape: [...shape] }];
  },
  reference({ inputs: [x, indices], outputs: [out], attributes, env }) {
    const counted = attributes.counted.map((dim) => evaluate(dim, env));
    for (let i = 0; i < x!.data.length; i++) {
      let rest = getElement(indices!, i), target = 0, stride = 1;
      for (let axis = counted.length - 1; axis >= 0; axis--) {
        target += (rest % counted[axis]!) * stride;
        rest = Math.floor(rest / counted[axis]!);
        stride *= out!.shape[axis]!;
      }
      if (rest !== 0) {
        throw new RangeError(`index ${getElement(indices!, i)} is outside the output`);
      }
      setElement(out!, { index: target, value: getElement(x!, i) });
    }
  },
  cases: (random) => [{
    name: "four places of sixteen",
    inputs: [random.input([1, 1, 2, 2]), {
      role: "input",
      dtype: "i32",
      shape: [1, 1, 2, 2],
      data: Int32Array.of(0, 3, 9, 15),
    }],
    attributes: { shape: [1, 1, 4, 4], counted: [1, 1, 4, 4] },
  }],
});
