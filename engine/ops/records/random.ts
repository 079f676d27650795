// random: numbers from a seed, in row-major order, as NumPy's RandomState draws them.

import { choice, dims, integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { setElement } from "../host_tensor.ts";
import { createRandomState } from "../mersenne_twister.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";

const DTYPES = ["f32", "f16", "bf16", "f64"] as const;

/** () → dtype[shape]: uniform in offset..offset + scale, or normal of that mean and deviation. */
export const random: OpRecord = defineOp({
  name: "random",
  summary: "uniform or normal numbers from a seed",
  attributes: {
    kind: choice(["uniform", "normal"]),
    shape: dims(),
    dtype: choice(DTYPES, "f32"),
    offset: number(0),
    scale: number(1),
    seed: integer(0, 0),
  },
  infer(inputs, { dtype, shape }) {
    checkInputCount(inputs, 0);
    return [{ dtype, shape: [...shape] }];
  },
  reference({ outputs: [out], attributes: { kind, offset, scale, seed } }) {
    const draw = createRandomState(seed)[kind];
    for (let i = 0; i < out!.data.length; i++) {
      setElement(out!, { index: i, value: offset + scale * draw() });
    }
  },
  cases: () =>
    (["uniform", "normal"] as const).flatMap((kind) =>
      DTYPES.map((dtype) => ({
        inputs: [],
        attributes: { kind, shape: [5, 7], dtype, offset: 1, scale: 2, seed: 7 },
      }))
    ),
});
