// Functions of one element by name: the kinds of the op `unary`, the activations of gated blocks and of convolutions.
// One record here is all that a function needs, beside what its expressions call: functions of four numbers in
// wasm/assembly/tensor/functions.ts, WGSL in gpu/kernels/element_functions.ts. Left out in WGSL: what would not be
// accurate enough over its domain.

import { numbered, type UnaryFunction } from "./record.ts";
import { erf, roundToEven, softplus } from "./special.ts";

const define = <Name extends string>(table: Readonly<Record<Name, UnaryFunction>>) => table;

/** Lane by lane: for functions that models hardly have. */
function inFloat64(name: string): string {
  return `four(${[0, 1, 2, 3].map((i) => `NativeMath.${name}(lane(v, ${i}))`).join(", ")})`;
}

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

const TABLE = define({
  silu: {
    float: (x, alpha) => x / (1 + Math.exp(-alpha * x)),
    simd: "f32x4.mul(v, sigmoid4(f32x4.mul(alpha, v)))",
    wgsl: "x * sigmoid(alpha * x)",
    onnx: ["Swish", [24]],
    parameters: [["alpha", 1]],
    words: ["silu", "swish"],
    gates: true,
    epilogue: true,
  },
  // The approximation that most models train with. (1 + tanh u) / 2 is the sigmoid of 2u, which keeps the digits of
  // what is nearly 0.
  gelu_tanh: {
    float: (x) => x * sigmoid(2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)),
    simd: "geluTanh4(v)",
    wgsl: "x * sigmoid(1.5957691 * (x + 0.044715 * x * x * x))",
    words: ["gelu_tanh", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"],
    gates: true,
  },
  gelu: {
    float: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
    simd: "gelu4(v)",
    wgsl: "0.5 * x * (1.0 + erf(x * 0.70710678))",
    words: ["gelu"],
    gates: true,
  },
  relu: {
    // NaN stays NaN.
    float: (x) => x < 0 ? 0 : x,
    integer: (x) => Math.max(0, x),
    bigint: (x) => x < 0n ? 0n : x,
    simd: "f32x4.pmax(v, zero)",
    i64: "x > 0 ? x : 0",
    wgsl: "max(x, 0.0)",
    wgslOf: { signed: "max(x, 0)" },
    onnx: ["Relu", [1, 6]],
    words: ["relu"],
    gates: true,
    epilogue: true,
  },
  sigmoid: {
    float: sigmoid,
    simd: "sigmoid4(v)",
    wgsl: "sigmoid(x)",
    onnx: ["Sigmoid", [1, 6]],
    gates: true,
    epilogue: true,
  },
  relu6: {
    float: (x) => x < 0 ? 0 : x > 6 ? 6 : x,
    simd: "f32x4.pmin(f32x4.pmax(v, zero), f32x4.splat(6))",
    wgsl: "clamp(x, 0.0, 6.0)",
    epilogue: true,
  },
  hard_swish: {
    float: (x) => x * Math.max(0, Math.min(1, x / 6 + 0.5)),
    simd: "f32x4.mul(v, clamp01(madd(v, f32x4.splat(0.16666667), f32x4.splat(0.5))))",
    wgsl: "x * clamp(x / 6.0 + 0.5, 0.0, 1.0)",
    onnx: ["HardSwish", [14]],
    epilogue: true,
  },
  /** x · alpha. */
  scale: {
    float: (x, alpha) => x * Math.fround(alpha),
    simd: "f32x4.mul(v, alpha)",
    wgsl: "x * alpha",
  },
  /** alpha · tanh(x / alpha), which keeps logits within ±alpha (Gemma 2). */
  softcap: {
    float: (x, alpha) => alpha * Math.tanh(x / alpha),
    simd: "f32x4.mul(alpha, tanh4(f32x4.div(v, alpha)))",
    wgsl: "alpha * safe_tanh(x / alpha)",
  },
  abs: {
    float: Math.abs,
    integer: Math.abs,
    bigint: (x) => x < 0n ? -x : x,
    simd: "f32x4.abs(v)",
    i64: "x < 0 ? -x : x",
    f64: "abs<f64>(x)",
    wgsl: "abs(x)",
    wgslOf: { signed: "abs(x)" },
    onnx: ["Abs", [1, 6]],
  },
  neg: {
    float: (x) => -x,
    integer: (x) => -x,
    bigint: (x) => -x,
    simd: "f32x4.neg(v)",
    i64: "-x",
    f64: "-x",
    wgsl: "-x",
    wgslOf: { signed: "-x" },
    onnx: ["Neg", [1, 6]],
  },
  sign: {
    float: Math.sign,
    integer: Math.sign,
    bigint: (x) => x > 0n ? 1n : x < 0n ? -1n : 0n,
    simd: "sign4(v)",
    i64: "x > 0 ? 1 : x < 0 ? -1 : 0",
    wgsl: "sign(x)",
    wgslOf: { signed: "sign(x)" },
    onnx: ["Sign", [9]],
  },
  bit_not: {
    integer: (x) => ~x,
    bigint: (x) => ~x,
    i64: "~x",
    wgslOf: { signed: "~x", unsigned: "~x", wide: "~x" },
    onnx: ["BitwiseNot", [18]],
  },
  not: { bool: (x) => 1 - x, i64: "x == 0 ? 1 : 0", wgslOf: { bool: "!x" }, onnx: ["Not", [1]] },
  is_nan: {
    float: (x) => Number(Number.isNaN(x)),
    test: true,
    simd: "f32x4.ne(v, v)",
    wgsl: "is_nan(x)",
    onnx: ["IsNaN", [9]],
  },
  /** `alpha`: whether -∞ counts, `beta`: whether ∞ does. */
  is_infinite: {
    float: (x, negative, positive) =>
      Number((x === Infinity && positive !== 0) || (x === -Infinity && negative !== 0)),
    test: true,
    simd: "infinite4(v, alpha, beta)",
    wgsl: "is_infinite(x) && select(beta, alpha, bitcast<i32>(x) < 0) != 0.0",
  },
  ceil: { float: Math.ceil, simd: "f32x4.ceil(v)", wgsl: "ceil(x)", onnx: ["Ceil", [1, 6]] },
  floor: { float: Math.floor, simd: "f32x4.floor(v)", wgsl: "floor(x)", onnx: ["Floor", [1, 6]] },
  round: { float: roundToEven, simd: "f32x4.nearest(v)", wgsl: "round(x)", onnx: ["Round", [11]] },
  exp: {
    float: Math.exp,
    simd: "wideExp4(v)",
    f64: "NativeMath.exp(x)",
    wgsl: "wide_exp(x)",
    onnx: ["Exp", [1, 6]],
  },
  log: {
    float: Math.log,
    domain: [0.1, 5],
    simd: "log4(v)",
    f64: "NativeMath.log(x)",
    wgsl: "safe_log(x)",
    onnx: ["Log", [1, 6]],
  },
  sqrt: {
    float: Math.sqrt,
    domain: [0, 9],
    simd: "f32x4.sqrt(v)",
    f64: "sqrt<f64>(x)",
    wgsl: "sqrt(x)",
    onnx: ["Sqrt", [1, 6]],
  },
  // C's pow(x, 0.5): of -∞ it is ∞, of -0 it is 0.
  root: {
    float: (x) => x === -Infinity ? Infinity : Math.sqrt(x) + 0,
    domain: [0, 9],
    simd: "root4(v)",
    wgsl: "select(sqrt(x), abs(x), is_infinite(x))",
  },
  reciprocal: {
    float: (x) => 1 / x,
    domain: [0.5, 5],
    simd: "f32x4.div(one, v)",
    wgsl: "1.0 / x",
    onnx: ["Reciprocal", [1, 6]],
  },
  sin: { float: Math.sin, simd: "sin4(v)", wgsl: "sin_of(x)", onnx: ["Sin", [7]] },
  cos: { float: Math.cos, simd: "cos4(v)", wgsl: "cos_of(x)", onnx: ["Cos", [7]] },
  tan: {
    float: Math.tan,
    domain: [-1.4, 1.4],
    simd: inFloat64("tan"),
    wgsl: "tan_of(x)",
    onnx: ["Tan", [7]],
  },
  asin: { float: Math.asin, domain: [-1, 1], simd: inFloat64("asin"), onnx: ["Asin", [7]] },
  acos: { float: Math.acos, domain: [-1, 1], simd: inFloat64("acos"), onnx: ["Acos", [7]] },
  atan: { float: Math.atan, simd: inFloat64("atan"), wgsl: "atan(x)", onnx: ["Atan", [7]] },
  sinh: { float: Math.sinh, simd: inFloat64("sinh"), wgsl: "safe_sinh(x)", onnx: ["Sinh", [9]] },
  cosh: { float: Math.cosh, simd: inFloat64("cosh"), wgsl: "safe_cosh(x)", onnx: ["Cosh", [9]] },
  tanh: { float: Math.tanh, simd: "tanh4(v)", wgsl: "safe_tanh(x)", onnx: ["Tanh", [1, 6]] },
  asinh: {
    float: Math.asinh,
    simd: inFloat64("asinh"),
    wgsl: "safe_asinh(x)",
    onnx: ["Asinh", [9]],
  },
  acosh: {
    float: Math.acosh,
    domain: [1, 9],
    simd: inFloat64("acosh"),
    wgsl: "safe_acosh(x)",
    onnx: ["Acosh", [9]],
  },
  atanh: {
    float: Math.atanh,
    domain: [-0.95, 0.95],
    simd: inFloat64("atanh"),
    wgsl: "safe_atanh(x)",
    onnx: ["Atanh", [9]],
  },
  erf: { float: erf, simd: "erf4(v)", wgsl: "erf(x)", onnx: ["Erf", [9]] },
  softplus: { float: softplus, simd: "softplus4(v)", wgsl: "softplus(x)", onnx: ["Softplus", [1]] },
  softsign: {
    float: (x) => x / (1 + Math.abs(x)),
    simd: "f32x4.div(v, f32x4.add(one, f32x4.abs(v)))",
    wgsl: "quotient(x, 1.0 + abs(x))",
    onnx: ["Softsign", [1]],
  },
  mish: {
    float: (x) => x * Math.tanh(softplus(x)),
    simd: "f32x4.mul(v, tanh4(softplus4(v)))",
    wgsl: "x * safe_tanh(softplus(x))",
    onnx: ["Mish", [18]],
  },
  hard_sigmoid: {
    float: (x, alpha, beta) => Math.max(0, Math.min(1, alpha * x + beta)),
    simd: "clamp01(madd(alpha, v, beta))",
    wgsl: "clamp(alpha * x + beta, 0.0, 1.0)",
    onnx: ["HardSigmoid", [1, 6]],
    parameters: [["alpha", 0.2], ["beta", 0.5]],
  },
  elu: {
    float: (x, alpha) => x < 0 ? alpha * Math.expm1(x) : x,
    simd: "negative(f32x4.mul(alpha, expm1_4(v)), v)",
    wgsl: "select(x, alpha * expm1(x), x < 0.0)",
    onnx: ["Elu", [1, 6]],
    parameters: [["alpha", 1]],
  },
  celu: {
    float: (x, alpha) => x < 0 ? alpha * Math.expm1(x / alpha) : x,
    simd: "negative(f32x4.mul(alpha, expm1_4(f32x4.div(v, alpha))), v)",
    wgsl: "select(x, alpha * expm1(x / alpha), x < 0.0)",
    onnx: ["Celu", [12]],
    parameters: [["alpha", 1]],
  },
  selu: {
    float: (x, alpha, gamma) => gamma * (x > 0 ? x : alpha * Math.expm1(x)),
    simd: "f32x4.mul(beta, negative(f32x4.mul(alpha, expm1_4(v)), v))",
    wgsl: "beta * select(alpha * expm1(x), x, x > 0.0)",
    onnx: ["Selu", [1, 6]],
    parameters: [["alpha", 1.6732632423543772], ["gamma", 1.0507009873554805]],
  },
  leaky_relu: {
    float: (x, alpha) => x < 0 ? alpha * x : x,
    simd: "negative(f32x4.mul(alpha, v), v)",
    wgsl: "select(x, alpha * x, x < 0.0)",
    onnx: ["LeakyRelu", [1, 6]],
    parameters: [["alpha", 0.01]],
  },
  thresholded_relu: {
    float: (x, alpha) => x > alpha ? x : 0,
    simd: "v128.and(v, f32x4.gt(v, alpha))",
    wgsl: "select(0.0, x, x > alpha)",
    ofNan: "0.0",
    onnx: ["ThresholdedRelu", [10]],
    parameters: [["alpha", 1]],
  },
  shrink: {
    float: (x, lambd, bias) => x < -lambd ? x + bias : x > lambd ? x - bias : 0,
    simd: "v128.bitselect(f32x4.add(v, beta), v128.and(f32x4.sub(v, beta), f32x4.gt(v, alpha)), " +
      "f32x4.lt(v, f32x4.neg(alpha)))",
    wgsl: "select(select(0.0, x - beta, x > alpha), x + beta, x < -alpha)",
    ofNan: "0.0",
    onnx: ["Shrink", [9]],
    parameters: [["lambd", 0.5], ["bias", 0]],
  },
});

/** Name of a function of one element. */
export type UnaryName = keyof typeof TABLE;

/** Every function by name. */
export const UNARY: Readonly<Record<UnaryName, UnaryFunction>> = TABLE;

/** Names of the functions. */
export const UNARY_NAMES: readonly UnaryName[] = Object.keys(TABLE) as UnaryName[];

/** Their numbers in instructions. */
export const UNARY_NUMBERS: Readonly<Record<UnaryName, number>> = numbered(TABLE);

/** Names of the functions that gates take. */
export const ACTIVATION_NAMES: readonly UnaryName[] = UNARY_NAMES.filter((name) =>
  UNARY[name].gates
);

/** Names of what convolutions apply to their results, in the order of their numbers in kernels. */
export const EPILOGUE_NAMES: readonly (UnaryName | "none")[] = [
  "none",
  ...UNARY_NAMES.filter((name) => UNARY[name].epilogue),
];
