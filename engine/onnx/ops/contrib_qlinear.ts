// Ops of com.microsoft on codes with a scale and a zero point each, as onnxruntime's quantizer writes them: they are
// formed of the numbers that codes stand for, and rounded once.

import { product } from "../../graph/dim/mod.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { float, int, ints, required } from "../derivation/attributes.ts";
import { applyBinary, applyUnary } from "../derivation/elementwise.ts";
import { contribOp, type OnnxCall, type OnnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { poolAttributes } from "./pooling.ts";
import { softmaxAlong } from "./softmax.ts";
import { windowOf } from "./window_attributes.ts";

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

function ofTwo(name: string, kind: "add" | "mul"): OnnxOp {
  return contribOp(name, {
    build(call) {
      const result = applyBinary(call, kind, numbersAt(call, 0), numbersAt(call, 3));
      return codesAt(call, 6, result, call.input(0));
    },
  });
}

/** Ops on codes with scales of their own. */
export const contribQLinearOps: readonly OnnxOp[] = [
  contribOp("QLinearAveragePool", {
    attributes: {
      ...poolAttributes,
      ceil_mode: int(0),
      channels_last: int(0),
      count_include_pad: int(0),
    },
    build(call) {
      const { kernel_shape: kernel, ceil_mode, channels_last, count_include_pad } = call.attributes;
      const x = numbersAt(call, 0), axes = x.type.shape.map((_, axis) => axis);
      const turned = (x: Tensor, perm: readonly number[]) =>
        channels_last ? call.one("transpose", [x], { perm }) : x;
      const pooled = call.one("pool", [turned(x, [0, axes.length - 1, ...axes.slice(1, -1)])], {
        ...windowOf(call.attributes),
        ...{ kind: "average", kernel },
        ceil: ceil_mode !== 0,
        count_pads: count_include_pad !== 0,
      });
      return codesAt(call, 3, turned(pooled, [0, ...axes.slice(2), 1]), call.input(0));
    },
  }),
  /** Inputs: scale and zero point of the result, then codes, scale and zero point of each part. */
  contribOp("QLinearConcat", {
    attributes: { axis: required(int()) },
    build(call) {
      const starts = Array.from(
        { length: Math.floor((call.inputs.length - 1) / 3) },
        (_, i) => 2 + 3 * i,
      );
      const parts = starts.map((at) => numbersAt(call, at));
      const joined = parts.length === 1
        ? parts[0]!
        : call.one("concat", parts, { axis: call.attributes.axis });
      return codesAt(call, 0, joined, call.input(2));
    },
  }),
  contribOp("QLinearGlobalAveragePool", {
    attributes: { channels_last: int(0) },
    build(call) {
      const x = numbersAt(call, 0), all = x.type.shape.map((_, axis) => axis);
      const axes = call.attributes.channels_last ? all.slice(1, -1) : all.slice(2);
      const mean = call.one("reduce", [x], { kind: "mean", axes, keep: true });
      return codesAt(call, 3, mean, call.input(0));
    },
  }),
  contribOp("QLinearLeakyRelu", {
    attributes: { alpha: float(0.01) },
    build(call) {
      const { alpha } = call.attributes;
      const result = applyUnary(call, "leaky_relu", numbersAt(call, 0), { alpha });
      return codesAt(call, 3, result, call.input(0));
    },
  }),
  ofTwo("QLinearAdd", "add"),
  ofTwo("QLinearMul", "mul"),
  contribOp("QLinearReduceMean", {
    attributes: { axes: required(ints(undefined)), keepdims: required(int()) },
    build(call) {
      const { axes, keepdims } = call.attributes;
      const attributes = { kind: "mean", axes, keep: keepdims !== 0 };
      return codesAt(call, 3, call.one("reduce", [numbersAt(call, 0)], attributes), call.input(0));
    },
  }),
  contribOp("QLinearSigmoid", {
    build: (call) =>
      codesAt(call, 3, applyUnary(call, "sigmoid", numbersAt(call, 0)), call.input(0)),
  }),
  /** `opset` is the version of Softmax that it was: below 13 all dims from the axis on are one line. */
  contribOp("QLinearSoftmax", {
    attributes: { axis: int(-1), opset: required(int()) },
    build(call) {
      const x = numbersAt(call, 0), { shape } = x.type;
      const axis = axisOf(call.attributes.axis, shape.length);
      if (call.attributes.opset >= 13) {
        return codesAt(call, 3, softmaxAlong(call, x, axis), call.input(0));
      }
      const lines = [product(shape.slice(0, axis)), product(shape.slice(axis))];
      const flat = softmaxAlong(call, call.one("reshape", [x], { shape: lines }), 1);
      return codesAt(call, 3, call.one("reshape", [flat], { shape }), call.input(0));
    },
  }),
  contribOp("QLinearWhere", {
    build(call) {
      const chosen = [call.input(0), numbersAt(call, 1), numbersAt(call, 4)];
      return codesAt(call, 7, call.one("where", chosen), call.input(1));
    },
  }),
];
