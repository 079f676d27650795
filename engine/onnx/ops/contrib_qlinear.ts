// Ops of com.microsoft on codes with a scale and a zero point each, as onnxruntime's quantizer writes them: they are
// formed of the numbers that codes stand for, and rounded once.

import { axisOf } from "../../ops/host_numbers.ts";
import {
  flag,
  float,
  int,
  ints,
  type OnnxAttributeRules,
  type OnnxAttributesOf,
  required,
} from "../derivation/attributes.ts";
import { applyBinary, applyUnary } from "../derivation/elementwise.ts";
import { contribOp, type OnnxCall, type OnnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { onLinesFrom, softmaxAlong } from "./softmax.ts";
import { poolAttributes, poolOf } from "./window_attributes.ts";

type Call = OnnxCall<unknown>;

/** What the codes of inputs `at`, `at + 1` (scale) and `at + 2` (zero point, if any) stand for. */
function numbersAt(call: Call, at: number): Tensor {
  const parts = [call.input(at), call.input(at + 1), call.inputs[at + 2]];
  return call.one("dequantize_linear", parts, { to: "f32" });
}

/** Numbers as codes of type `to`, with the scale of input `at` and the zero point behind it. */
function codesAt(call: Call, at: number, x: Tensor, { type: { dtype: to } }: Tensor): Tensor[] {
  return call.op("quantize_linear", [x, call.input(at), call.inputs[at + 1]], { to });
}

/** A function of the codes at input 0; the scale of the result is input 3. */
function ofOne<const R extends OnnxAttributeRules>(
  name: string,
  attributes: R,
  apply: (call: OnnxCall<OnnxAttributesOf<R>>, x: Tensor) => Tensor,
): OnnxOp {
  return contribOp(name, {
    attributes,
    build: (call) => codesAt(call, 3, apply(call, numbersAt(call, 0)), call.input(0)),
  });
}

function ofTwo(name: string, kind: "add" | "mul"): OnnxOp {
  return contribOp(name, {
    build(call) {
      const result = applyBinary(call, { kind, a: numbersAt(call, 0), b: numbersAt(call, 3) });
      return codesAt(call, 6, result, call.input(0));
    },
  });
}

const poolRules = {
  ...poolAttributes,
  ...{ ceil_mode: flag(false), channels_last: flag(false), count_include_pad: flag(false) },
} as const;

/** Ops on codes with scales of their own. */
export const contribQLinearOps: readonly OnnxOp[] = [
  ofTwo("QLinearAdd", "add"),
  ofOne("QLinearAveragePool", poolRules, (call, x) => {
    const { channels_last, count_include_pad: count_pads } = call.attributes;
    const axes = x.type.shape.map((_, axis) => axis);
    const turned = (x: Tensor, perm: readonly number[]) =>
      channels_last ? call.one("transpose", [x], { perm }) : x;
    const pooled = call.one("pool", [turned(x, [0, axes.length - 1, ...axes.slice(1, -1)])], {
      ...poolOf(call.attributes),
      ...{ kind: "average", count_pads },
    });
    return turned(pooled, [0, ...axes.slice(2), 1]);
  }),
  /** Inputs: scale and zero point of the result, then codes, scale and zero point of each part. */
  contribOp("QLinearConcat", {
    attributes: { axis: required(int()) },
    build(call) {
      const count = Math.floor((call.inputs.length - 1) / 3);
      const parts = Array.from({ length: count }, (_, i) => numbersAt(call, 2 + 3 * i));
      const joined = parts.length === 1 ? parts[0]! : call.one("concat", parts, call.attributes);
      return codesAt(call, 0, joined, call.input(2));
    },
  }),
  ofOne("QLinearGlobalAveragePool", { channels_last: flag(false) }, (call, x) => {
    const all = x.type.shape.map((_, axis) => axis);
    const axes = call.attributes.channels_last ? all.slice(1, -1) : all.slice(2);
    return call.one("reduce", [x], { kind: "mean", axes, keep: true });
  }),
  ofOne(
    "QLinearLeakyRelu",
    { alpha: float(0.01) },
    (call, x) => applyUnary(call, { kind: "leaky_relu", x }, call.attributes),
  ),
  ofTwo("QLinearMul", "mul"),
  ofOne(
    "QLinearReduceMean",
    { axes: required(ints()), keepdims: required(flag()) },
    (call, x) => {
      const { axes, keepdims: keep } = call.attributes;
      return call.one("reduce", [x], { kind: "mean", axes, keep });
    },
  ),
  ofOne("QLinearSigmoid", {}, (call, x) => applyUnary(call, { kind: "sigmoid", x })),
  /** `opset` is the version of Softmax that it was: below 13 all dims from the axis on are one line. */
  ofOne("QLinearSoftmax", { axis: int(-1), opset: required(int()) }, (call, x) => {
    const axis = axisOf(call.attributes.axis, x.type.shape.length);
    return call.attributes.opset >= 13
      ? softmaxAlong(call, { x, axis })
      : onLinesFrom(call, { x, axis, apply: softmaxAlong });
  }),
  contribOp("QLinearWhere", {
    build(call) {
      const chosen = [call.input(0), numbersAt(call, 1), numbersAt(call, 4)];
      return codesAt(call, 7, call.one("where", chosen), call.input(1));
    },
  }),
];
