// Ops on features that are plain arithmetic: they become engine ops, and so run where the rest of the graph does.

import { elementCount } from "../../../ops/host_tensor.ts";
import { type Dim, mul } from "../../../graph/dim/mod.ts";
import {
  bigint,
  bigints,
  float,
  floats,
  ints,
  required,
  text,
} from "../../derivation/attributes.ts";
import { applyBinary, applyUnary, castTo, vectorOf } from "../../derivation/elementwise.ts";
import { mlOp, type OnnxCall, type OnnxOp } from "../../derivation/op.ts";
import type { Tensor } from "../../derivation/tensor.ts";
import { numbersOf } from "../../../ops/host_numbers.ts";

/** Sums and quotients are of float32, or of float64 where the input is. */
function asFloats(call: OnnxCall<unknown>): Tensor {
  const x = call.input(0);
  return castTo(call, { x, to: x.type.dtype === "f64" ? "f64" : "f32" });
}

function asFloat32(call: OnnxCall<unknown>, x: Tensor): Tensor {
  return castTo(call, { x, to: "f32" });
}

/** One number for all features, or one for each. */
function checkPerFeature(call: OnnxCall<unknown>, name: string, count: number): void {
  const width = call.input(0).type.shape.at(-1);
  if (count === 1 || count === width || count > 1 && typeof width === "object") return;
  throw new RangeError(`${name} has ${count} entries: must have 1, or ${width} as a row has`);
}

const NORMS = { MAX: "max", L1: "l1", L2: "l2" } as const;

/** Ops on features. */
export const mlFeatureOps: readonly OnnxOp[] = [
  /** ArrayFeatureExtractor: columns by index; of a vector a row. */
  mlOp("ArrayFeatureExtractor", {
    build(call) {
      const [x, indices] = call.take(2) as [Tensor, Tensor];
      const count = indices.type.shape.reduce<Dim>((all, dim) => mul(all, dim), 1);
      const rank = x.type.shape.length;
      const flat = call.one("reshape", [indices], { shape: [count] });
      const picked = call.one("gather", [x, flat], { axis: rank - 1 });
      return [rank > 1 ? picked : call.one("reshape", [picked], { shape: [1, count] })];
    },
    evaluate(call) {
      const [x] = call.inputs;
      if (x?.dtype !== "string") {
        throw new TypeError(`input 0 of ${call.node.name} must be a tensor`);
      }
      const indices = numbersOf(call.tensor(1)), width = x.shape.at(-1) ?? 0;
      for (const index of indices) {
        if (index < 0 || index >= width) {
          throw new RangeError(`Cannot use index ${index}: there are ${width} elements`);
        }
      }
      const outer = elementCount(x.shape.slice(0, -1));
      const data = Array.from(
        { length: outer * indices.length },
        (_, i) => x.data[Math.floor(i / indices.length) * width + indices[i % indices.length]!]!,
      );
      const before = x.shape.length > 1 ? x.shape.slice(0, -1) : [1];
      return [{ dtype: "string", shape: [...before, indices.length], data }];
    },
  }),
  /** Binarizer: 1 above a threshold, else 0. */
  mlOp("Binarizer", {
    attributes: { threshold: float(0) },
    build(call) {
      const x = asFloats(call);
      const threshold = call.scalar(x.type.dtype, call.attributes.threshold);
      const above = applyBinary(call, { kind: "greater", a: x, b: threshold });
      return [castTo(call, { x: above, to: call.input(0).type.dtype })];
    },
  }),
  /** FeatureVectorizer: features of all inputs side by side; each is cut, or filled up with zeros, to its size. */
  mlOp("FeatureVectorizer", {
    attributes: { inputdimensions: required(ints()) },
    build(call) {
      const sizes = call.attributes.inputdimensions;
      if (sizes.length !== call.inputs.length) {
        throw new RangeError(`${call.inputs.length} inputs for ${sizes.length} sizes`);
      }
      const parts = sizes.map((size, i) => {
        const x = asFloat32(call, call.input(i));
        const { shape } = x.type;
        const rows = shape.length === 1 ? 1 : shape[0]!;
        const width = shape.slice(1).reduce<Dim>((all, dim) => mul(all, dim), 1);
        return fitted(
          call,
          call.one("reshape", [x], {
            shape: [rows, shape.length === 1 ? shape[0]! : width],
          }),
          size,
        );
      });
      return [call.one("concat", parts, { axis: 1 })];
    },
  }),
  /** Imputer: a value, which may be NaN, becomes another one. */
  mlOp("Imputer", {
    attributes: {
      imputed_value_floats: floats(),
      imputed_value_int64s: bigints(),
      replaced_value_float: float(0),
      replaced_value_int64: bigint(0n),
    },
    build(call) {
      const x = call.input(0), { dtype } = x.type;
      const { imputed_value_floats, imputed_value_int64s, ...given } = call.attributes;
      const isFloat = dtype.startsWith("f");
      const imputed = isFloat ? imputed_value_floats : imputed_value_int64s;
      const other = isFloat ? imputed_value_int64s : imputed_value_floats;
      if (!imputed || other) throw new TypeError(`one list of values for ${dtype} must be given`);
      checkPerFeature(call, "imputed values", imputed.length);
      const replaced = isFloat ? given.replaced_value_float : Number(given.replaced_value_int64);
      const isReplaced = Number.isNaN(replaced)
        ? applyUnary(call, { kind: "is_nan", x })
        : applyBinary(call, { kind: "equal", a: x, b: call.scalar(dtype, replaced) });
      const values = vectorOf(call, { dtype, values: imputed.map(Number) });
      return [call.one("where", [isReplaced, values, x])];
    },
  }),
  /** Normalizer: each row by its norm; a row whose norm is 0 stays. MAX is the greatest value, not of magnitudes. */
  mlOp("Normalizer", {
    attributes: { norm: text("MAX", { choices: Object.keys(NORMS) }) },
    build(call) {
      const x = asFloats(call), { shape, dtype } = x.type;
      if (shape.length !== 1 && shape.length !== 2) {
        throw new RangeError(
          `rows of features must be of one or two dims: they have ${shape.length}`,
        );
      }
      const kind = NORMS[call.attributes.norm as keyof typeof NORMS];
      const axes = [shape.length - 1];
      const norm = call.one("reduce", [x], { kind, axes, keep: true });
      const isZero = applyBinary(call, { kind: "equal", a: norm, b: call.scalar(dtype, 0) });
      const divisor = call.one("where", [isZero, call.scalar(dtype, 1), norm]);
      return [asFloat32(call, applyBinary(call, { kind: "div", a: x, b: divisor }))];
    },
  }),
  /** Scaler: (x - offset) · scale. */
  mlOp("Scaler", {
    attributes: { offset: required(floats()), scale: required(floats()) },
    prepare(given) {
      const { offset, scale } = given;
      if (offset.length === scale.length) return given;
      throw new RangeError(`${offset.length} offsets for ${scale.length} scales`);
    },
    build(call) {
      const x = asFloats(call), { dtype } = x.type;
      const { offset, scale } = call.attributes;
      checkPerFeature(call, "scale", scale.length);
      const centred = applyBinary(call, {
        kind: "sub",
        a: x,
        b: vectorOf(call, { dtype, values: offset }),
      });
      const scaled = applyBinary(call, {
        kind: "mul",
        a: centred,
        b: vectorOf(call, { dtype, values: scale }),
      });
      return [asFloat32(call, scaled)];
    },
  }),
];

/** [rows, width] cut or filled up with zeros to [rows, size]. */
function fitted(call: OnnxCall<unknown>, x: Tensor, size: number): Tensor {
  const [rows, width] = x.type.shape as [Dim, Dim];
  if (typeof width !== "number") throw new RangeError("how many features there are is not known");
  if (width === size) return x;
  if (width > size) {
    return call.one("slice", [x], { starts: [0, 0], sizes: [rows, size], steps: [1, 1] });
  }
  const zeros = call.one("expand", [call.scalar("f32", 0)], { shape: [rows, size - width] });
  return call.one("concat", [x, zeros], { axis: 1 });
}
