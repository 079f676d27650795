// Softmax, LogSoftmax and Hardmax. Up to version 11 all dims from the axis on are one line; from 13 on
// the axis alone is.

import { boundsOf, max, product, sub } from "../../graph/dim/mod.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { int } from "../derivation/attributes.ts";
import { applyBinary, applyUnary, castTo, vectorOf } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";

/** A tensor, and the axis along which something is done. */
interface Lines {
  readonly x: Tensor;
  readonly axis: number;
}

type Along = (call: OnnxCall<unknown>, lines: Lines) => Tensor;

/** All dims from an axis on as one line: what these ops did below version 13. */
export function onLinesFrom(
  call: OnnxCall<unknown>,
  { x, axis, apply }: Lines & { readonly apply: Along },
): Tensor {
  const { shape } = x.type;
  const lines = [product(shape.slice(0, axis)), product(shape.slice(axis))];
  const flat = apply(call, { x: call.one("reshape", [x], { shape: lines }), axis: 1 });
  return call.one("reshape", [flat], { shape });
}

function normalizer(name: string, apply: Along): OnnxOp {
  return onnxOp(name, {
    versions: [1, 11, 13],
    attributes: { axis: int() },
    build(call) {
      const x = call.input(0), { length: rank } = x.type.shape;
      const axis = axisOf(call.attributes.axis ?? (call.version < 13 ? 1 : -1), rank);
      const isLine = call.version >= 13 || axis === rank - 1;
      return [isLine ? apply(call, { x, axis }) : onLinesFrom(call, { x, axis, apply })];
    },
  });
}

/** exp(x - max) / sum along an axis; along the last one in float32 also for half precision. */
export function softmaxAlong(call: OnnxCall<unknown>, { x, axis }: Lines): Tensor {
  const { dtype, shape } = x.type;
  // Lines that lie side by side go better all at once than one by one.
  const isLast = shape.slice(axis + 1).every((dim) => dim === 1);
  if (dtype !== "f64" && isLast) {
    return castTo(call, {
      x: call.one("softmax", [castTo(call, { x, to: "f32" })], { axis }),
      to: dtype,
    });
  }
  const along = { axes: [axis], keep: true };
  const largest = call.one("reduce", [x], { kind: "max", ...along });
  const powers = applyUnary(call, {
    kind: "exp",
    x: applyBinary(call, { kind: "sub", a: x, b: largest }),
  });
  return applyBinary(call, {
    kind: "div",
    a: powers,
    b: call.one("reduce", [powers], { kind: "sum", ...along }),
  });
}

/** x - max - log Σ exp(x - max) along an axis: less the maximum first, so that large numbers cancel exactly. */
export function logSoftmaxAlong(call: OnnxCall<unknown>, { x, axis }: Lines): Tensor {
  const along = { axes: [axis], keep: true };
  const below = applyBinary(call, {
    kind: "sub",
    a: x,
    b: call.one("reduce", [x], { kind: "max", ...along }),
  });
  const total = call.one("reduce", [below], { kind: "log_sum_exp", ...along });
  return applyBinary(call, { kind: "sub", a: below, b: total });
}

/** 1 at the first of the largest elements, 0 elsewhere. */
function hardmaxAlong(call: OnnxCall<unknown>, { x, axis }: Lines): Tensor {
  const { dtype, shape } = x.type;
  const size = shape[axis]!;
  // Nothing has no largest element: one is added, which has no place in the result.
  const after = shape.map((_, i) => i === axis ? max(sub(1, size), 0) : 0);
  const some = boundsOf(size).min > 0
    ? x
    : call.one("pad", [x], { before: shape.map(() => 0), after });
  const best = call.one("arg_reduce", [some], { kind: "max", axis, keep: false });
  const offOn = vectorOf(call, { dtype, values: [0, 1] });
  return call.one("one_hot", [best, offOn], { depth: size, axis });
}

/** Normalisations of lines. */
export const softmaxOps: readonly OnnxOp[] = [
  normalizer("Hardmax", hardmaxAlong),
  normalizer("LogSoftmax", logSoftmaxAlong),
  normalizer("Softmax", softmaxAlong),
];
