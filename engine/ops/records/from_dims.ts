// from_dims: an integer tensor whose elements are dims, for shapes that a tensor op reads after all
// (positions, a Shape that is an output). Nothing else of shape arithmetic is left at run time.

import { choice, dims, integers } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { evaluate } from "../../graph/dim/mod.ts";
import { elementCount, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";

const TYPES = [
  ...["i64", "i32", "u64", "u32", "f32", "f64", "i16", "u16", "i8", "u8", "bool"] as const,
] as const;

/** () → dtype[shape], elements `values` in row-major order. */
export const fromDims: OpRecord = defineOp({
  name: "from_dims",
  summary: "an integer tensor whose elements are dims",
  attributes: { values: dims(), shape: integers(), dtype: choice(TYPES) },
  infer(inputs, { values, shape, dtype }) {
    checkInputCount(inputs, 0);
    if (elementCount(shape) !== values.length) {
      throw new RangeError(`${values.length} values for [${shape.join(", ")}]`);
    }
    return [{ dtype, shape: [...shape] }];
  },
  reference({ outputs: [out], attributes: { values }, env }) {
    values.forEach((value, i) => setElement(out!, { index: i, value: evaluate(value, env) }));
  },
  cases: () => [
    ...(["i32", "f32"] as const).map((dtype) => ({
      inputs: [],
      attributes: { values: [7, -1, 2 ** 20], shape: [3], dtype },
    })),
    ...TYPES.map((dtype) => ({ inputs: [], attributes: { values: [1, 0], shape: [2], dtype } })),
  ],
});
