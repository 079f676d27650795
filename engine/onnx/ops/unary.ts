// Ops that apply one function to every element: a table of names, versions and engine kinds. Attributes
// that parametrise the function are passed on as `alpha` and `beta`.

import type { UnaryName } from "../../ops/unary_kinds.ts";
import { float, int, ints, text } from "../derivation/attributes.ts";
import { applyBinary, applyUnary, knownScalar } from "../derivation/elementwise.ts";
import { defineOnnxOp, type OnnxOp } from "../derivation/op.ts";

// Version 1 had a list by which inputs could be overwritten; it never changed a result.
const legacy = { consumed_inputs: ints(undefined, { until: 5 }) };

const plain: readonly (readonly [name: string, kind: UnaryName, versions: readonly number[]])[] = [
  ["Abs", "abs", [1, 6]],
  ["Acos", "acos", [7]],
  ["Acosh", "acosh", [9]],
  ["Asin", "asin", [7]],
  ["Asinh", "asinh", [9]],
  ["Atan", "atan", [7]],
  ["Atanh", "atanh", [9]],
  ["BitwiseNot", "bit_not", [18]],
  ["Ceil", "ceil", [1, 6]],
  ["Cos", "cos", [7]],
  ["Cosh", "cosh", [9]],
  ["Erf", "erf", [9]],
  ["Exp", "exp", [1, 6]],
  ["Floor", "floor", [1, 6]],
  ["HardSwish", "hard_swish", [14]],
  ["IsNaN", "is_nan", [9]],
  ["Log", "log", [1, 6]],
  ["Mish", "mish", [18]],
  ["Neg", "neg", [1, 6]],
  ["Not", "not", [1]],
  ["Reciprocal", "reciprocal", [1, 6]],
  ["Relu", "relu", [1, 6]],
  ["Round", "round", [11]],
  ["Sigmoid", "sigmoid", [1, 6]],
  ["Sign", "sign", [9]],
  ["Sin", "sin", [7]],
  ["Sinh", "sinh", [9]],
  ["Softplus", "softplus", [1]],
  ["Softsign", "softsign", [1]],
  ["Sqrt", "sqrt", [1, 6]],
  ["Tan", "tan", [7]],
  ["Tanh", "tanh", [1, 6]],
];

interface Parametrised {
  readonly name: string;
  readonly kind: UnaryName;
  readonly versions: readonly number[];
  /** Attribute that becomes `alpha`, with its default. */
  readonly alpha: readonly [string, number];
  /** Attribute that becomes `beta`, with its default. */
  readonly beta?: readonly [string, number];
}

const parametrised: readonly Parametrised[] = [
  { name: "Celu", kind: "celu", versions: [12], alpha: ["alpha", 1] },
  { name: "Elu", kind: "elu", versions: [1, 6], alpha: ["alpha", 1] },
  {
    name: "HardSigmoid",
    kind: "hard_sigmoid",
    versions: [1, 6],
    alpha: ["alpha", 0.2],
    beta: ["beta", 0.5],
  },
  { name: "LeakyRelu", kind: "leaky_relu", versions: [1, 6], alpha: ["alpha", 0.01] },
  {
    name: "Selu",
    kind: "selu",
    versions: [1, 6],
    alpha: ["alpha", 1.6732632423543772],
    beta: ["gamma", 1.0507009873554805],
  },
  {
    name: "Shrink",
    kind: "shrink",
    versions: [9],
    alpha: ["lambd", 0.5],
    beta: ["bias", 0],
  },
  { name: "Swish", kind: "silu", versions: [24], alpha: ["alpha", 1] },
  { name: "ThresholdedRelu", kind: "thresholded_relu", versions: [10], alpha: ["alpha", 1] },
];

const gelu = defineOnnxOp({
  name: "Gelu",
  versions: [20],
  attributes: { approximate: text("none", ["none", "tanh"]) },
  build(call) {
    const kind = call.attributes.approximate === "tanh" ? "gelu_tanh" : "gelu";
    return [applyUnary(call, kind, call.input(0))];
  },
});

const isInf = defineOnnxOp({
  name: "IsInf",
  versions: [10],
  attributes: { detect_negative: int(1), detect_positive: int(1) },
  build(call) {
    const { detect_negative: alpha, detect_positive: beta } = call.attributes;
    return [applyUnary(call, "is_infinite", call.input(0), { alpha, beta })];
  },
});

/** Clip: limits were attributes up to version 6. */
const clip = defineOnnxOp({
  name: "Clip",
  versions: [1, 6, 11],
  attributes: {
    ...legacy,
    min: float(undefined, { until: 10 }),
    max: float(undefined, { until: 10 }),
  },
  build(call) {
    const x = call.input(0);
    const { min, max } = call.attributes;
    const limit = (index: number, attribute: number | undefined) =>
      attribute === undefined ? call.inputs[index] : call.scalar(x.type.dtype, attribute);
    const low = limit(1, min), high = limit(2, max);
    // ReLU in disguise.
    if (low && !high && x.type.dtype === "f32" && Object.is(knownScalar(low), 0)) {
      return [applyUnary(call, "relu", x)];
    }
    const raised = low ? applyBinary(call, "max", x, low) : x;
    return [high ? applyBinary(call, "min", raised, high) : raised];
  },
});

/** Ops of one input that keep its shape. */
export const unaryOps: readonly OnnxOp[] = [
  ...plain.map(([name, kind, versions]) =>
    defineOnnxOp({
      name,
      versions,
      attributes: versions[0] === 1 ? legacy : {},
      build: (call) => [applyUnary(call, kind, call.input(0))],
    })
  ),
  ...parametrised.map(({ name, kind, versions, alpha, beta = ["beta", 0] }) =>
    defineOnnxOp({
      name,
      versions,
      attributes: {
        ...(versions[0] === 1 ? legacy : {}),
        [alpha[0]]: float(alpha[1]),
        [beta[0]]: float(beta[1]),
      },
      build(call) {
        const given = call.attributes as Readonly<Record<string, number>>;
        const parameters = { alpha: given[alpha[0]]!, beta: given[beta[0]]! };
        return [applyUnary(call, kind, call.input(0), parameters)];
      },
    })
  ),
  clip,
  gelu,
  isInf,
];
