// Ops that make tensors from sizes or from attributes.

import { ceilDiv, compare, type Dim, max, mul, sub } from "../../dim.ts";
import { getElement } from "../../host_tensor.ts";
import { int, tensor } from "../attributes.ts";
import { defineOnnxOp, type OnnxOp } from "../op.ts";
import { readTensor } from "../stored.ts";
import { elementType } from "./casts.ts";

/** ConstantOfShape: one element, repeated. */
const constantOfShape = defineOnnxOp({
  name: "ConstantOfShape",
  versions: [9],
  attributes: { value: tensor() },
  build(call) {
    const { value } = call.attributes;
    if (value?.dtype === "string") return call.onHost();
    const element = value
      ? call.constant({ ...readTensor(value), shape: [] })
      : call.scalar("f32", 0);
    return call.op("expand", [element], { shape: call.dims(0) });
  },
});

const eyeLike = defineOnnxOp({
  name: "EyeLike",
  versions: [9],
  attributes: { dtype: int(), k: int(0) },
  build(call) {
    const { shape, dtype } = call.input(0).type;
    if (shape.length !== 2) throw new RangeError(`the input has ${shape.length} dims: must have 2`);
    const { dtype: to, k } = call.attributes;
    return call.op("eye", [], {
      rows: shape[0]!,
      columns: shape[1]!,
      k,
      dtype: to === undefined ? dtype : elementType(call, to),
    });
  },
});

/** Range: from version 27 on half precision counts in the type that `stash_type` names. */
const range = defineOnnxOp({
  name: "Range",
  versions: [11, 27],
  attributes: { stash_type: int(1, { since: 27 }) },
  build(call) {
    const start = call.input(0), delta = call.input(2);
    const { dtype } = start.type;
    // Elements are computed in float64 and rounded once, which is closer than any stash type.
    if (/^[iu]/.test(dtype)) {
      const size = wholeSize(call.dims(0)[0]!, call.dims(1)[0]!, call.dims(2)[0]!);
      return call.op("range", [start, delta], { size });
    }
    const [first, limit, step] = [0, 1, 2].map((index) => getElement(call.contents(index), 0));
    const size = Math.max(0, Math.ceil((limit! - first!) / step!));
    if (!Number.isSafeInteger(size)) throw new RangeError(`a range of ${size} elements`);
    return call.op("range", [start, delta], { size });
  },
});

function wholeSize(start: Dim, limit: Dim, delta: Dim): Dim {
  const sign = compare(delta, 0);
  if (sign === ">") return max(ceilDiv(sub(limit, start), delta), 0);
  if (sign === "<") return max(ceilDiv(sub(start, limit), mul(delta, -1)), 0);
  throw new RangeError("the step of a range must be proven positive or negative");
}

/** Generators. */
export const generatorOps: readonly OnnxOp[] = [constantOfShape, eyeLike, range];
