// Ops that make tensors from sizes or from attributes.

import type { OnnxSparseTensor } from "../file/model.ts";
import { ceilDiv, compare, type Dim, max, mul, sub } from "../../graph/dim/mod.ts";
import { getElement } from "../../ops/host_tensor.ts";
import {
  bigint,
  bigints,
  float,
  floats,
  int,
  type OnnxAttributeRule,
  type OnnxAttributesOf,
  tensor,
  text,
  texts,
} from "../derivation/attributes.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";
import {
  constantTensor,
  readTensor,
  tensorOfFile,
  tensorOfSparse,
} from "../derivation/constants.ts";
import type { Entry } from "../derivation/tensor.ts";
import { elementType } from "./casts.ts";

const constantAttributes = {
  value: tensor(),
  sparse_value: { kind: "sparse", since: 11 } as OnnxAttributeRule<OnnxSparseTensor | undefined>,
  value_float: float(undefined, { since: 12 }),
  value_floats: floats(undefined, { since: 12 }),
  value_int: bigint(undefined, { since: 12 }),
  value_ints: bigints(undefined, { since: 12 }),
  value_string: text(undefined, { choices: undefined, range: { since: 12 } }),
  value_strings: texts(undefined, { since: 12 }),
} as const;

function constantOf(given: OnnxAttributesOf<typeof constantAttributes>): Entry {
  const count = Object.values(given).filter((value) => value !== undefined).length;
  if (count !== 1) throw new TypeError(`${count} values are given: must be one`);
  const { value_float: float, value_int: int, value_string: string } = given;
  const floats = given.value_floats ?? (float === undefined ? undefined : [float]);
  const ints = given.value_ints ?? (int === undefined ? undefined : [int]);
  const strings = given.value_strings ?? (string === undefined ? undefined : [string]);
  const shape = [float, int, string].some((value) => value !== undefined)
    ? []
    : [(floats ?? ints ?? strings)?.length ?? 0];
  if (given.value) return tensorOfFile(given.value);
  if (given.sparse_value) return tensorOfSparse(given.sparse_value);
  if (floats) return constantTensor({ dtype: "f32", shape, data: Float32Array.from(floats) });
  if (ints) return constantTensor({ dtype: "i64", shape, data: BigInt64Array.from([...ints]) });
  return { kind: "object", value: { dtype: "string", shape, data: strings ?? [] } };
}

function wholeSize(start: Dim, limit: Dim, delta: Dim): Dim {
  const sign = compare(delta, 0);
  if (sign === ">") return max(ceilDiv(sub(limit, start), delta), 0);
  if (sign === "<") return max(ceilDiv(sub(start, limit), mul(delta, -1)), 0);
  throw new RangeError("the step of a range must be proven positive or negative");
}

/** Generators. */
export const generatorOps: readonly OnnxOp[] = [
  /** Constant: one of these attributes; from version 1 on `value`, the others came later. */
  onnxOp("Constant", {
    versions: [1, 11, 12],
    attributes: constantAttributes,
    build(call) {
      const made = constantOf(call.attributes);
      return made.kind === "tensor" ? [made] : call.onHost();
    },
    evaluate(call) {
      const made = constantOf(call.attributes);
      return [made.kind === "tensor" ? made.known : made.value];
    },
  }),
  /** ConstantOfShape: one element, repeated. */
  onnxOp("ConstantOfShape", {
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
  }),
  onnxOp("EyeLike", {
    versions: [9],
    attributes: { dtype: int(), k: int(0) },
    build(call) {
      const { shape, dtype } = call.input(0).type;
      if (shape.length !== 2) {
        throw new RangeError(`the input has ${shape.length} dims: must have 2`);
      }
      const { dtype: to, k } = call.attributes;
      const made = to === undefined ? dtype : elementType(call, to);
      return call.op("eye", [], { rows: shape[0]!, columns: shape[1]!, k, dtype: made });
    },
  }),
  /** Range: from version 27 on half precision counts in the type that `stash_type` names. */
  onnxOp("Range", {
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
  }),
];
