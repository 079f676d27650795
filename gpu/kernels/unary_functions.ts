// Functions of one element as WGSL, by the names of the engine's op `unary`. WGSL promises nothing about NaN in
// comparisons, min and max, so what depends on it looks at the bits. Left out: functions whose results WGSL
// does not make accurate enough over their domain.

import { wgsl } from "../wgsl.ts";

/** Expressions of `x`, `params.alpha` and `params.beta` on f32. */
export const UNARY_FLOAT: Readonly<Record<string, string>> = {
  abs: "abs(x)",
  neg: "-x",
  sign: "sign(x)",
  relu: "select(x, 0.0, x < 0.0)",
  ceil: "ceil(x)",
  floor: "floor(x)",
  round: "round(x)",
  exp: "exp(x)",
  log: "log(x)",
  sqrt: "sqrt(x)",
  reciprocal: "1.0 / x",
  sin: "sin(x)",
  cos: "cos(x)",
  tan: "tan(x)",
  atan: "atan(x)",
  sinh: "sinh(x)",
  cosh: "cosh(x)",
  tanh: "safe_tanh(x)",
  asinh: "sign(x) * log(abs(x) + sqrt(x * x + 1.0))",
  acosh: "log(x + sqrt(x * x - 1.0))",
  atanh: "0.5 * log((1.0 + x) / (1.0 - x))",
  erf: "erf(x)",
  sigmoid: "sigmoid(x)",
  silu: "x * sigmoid(params.alpha * x)",
  gelu: "0.5 * x * (1.0 + erf(x * 0.70710678))",
  gelu_tanh: "0.5 * x * (1.0 + safe_tanh(0.79788456 * (x + 0.044715 * x * x * x)))",
  softplus: "softplus(x)",
  softsign: "x / (1.0 + abs(x))",
  mish: "x * safe_tanh(softplus(x))",
  hard_sigmoid: "clamp(params.alpha * x + params.beta, 0.0, 1.0)",
  hard_swish: "x * clamp(x / 6.0 + 0.5, 0.0, 1.0)",
  elu: "select(x, params.alpha * (exp(min(x, 0.0)) - 1.0), x < 0.0)",
  celu: "select(x, params.alpha * (exp(min(x, 0.0) / params.alpha) - 1.0), x < 0.0)",
  selu: "params.beta * select(params.alpha * (exp(min(x, 0.0)) - 1.0), x, x > 0.0)",
  leaky_relu: "select(x, params.alpha * x, x < 0.0)",
  thresholded_relu: "select(0.0, x, x > params.alpha)",
  shrink:
    "select(select(0.0, x - params.beta, x > params.alpha), x + params.beta, x < -params.alpha)",
};

/** Expressions of `x` on f32 whose result is a truth value. */
export const UNARY_TESTS: Readonly<Record<string, string>> = {
  is_nan: "is_nan(x)",
  is_infinite: "(is_infinite(x) && params.alpha != 0.0 && bitcast<i32>(x) < 0) || " +
    "(is_infinite(x) && params.beta != 0.0 && bitcast<i32>(x) > 0)",
};

/** Expressions of `x` on i32 and u32. */
export const UNARY_INTEGER: Readonly<Record<string, string>> = { bit_not: "~x" };

/** Expressions of `x` on i32 only. */
export const UNARY_SIGNED: Readonly<Record<string, string>> = {
  abs: "abs(x)",
  neg: "-x",
  sign: "sign(x)",
  relu: "max(x, 0)",
};

/** Tests of the bits of a float. */
export const FLOAT_TESTS: string = wgsl`
  fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
  }

  fn is_infinite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
  }
`;

/** The functions that the expressions call. */
export const UNARY_FUNCTIONS: string = wgsl`
  ${FLOAT_TESTS}

  fn safe_tanh(x: f32) -> f32 {
    let e = exp(-2.0 * abs(x));
    return sign(x) * (1.0 - e) / (1.0 + e);
  }

  fn sigmoid(x: f32) -> f32 {
    let e = exp(-abs(x));
    return select(e, 1.0, x >= 0.0) / (1.0 + e);
  }

  fn softplus(x: f32) -> f32 {
    return max(x, 0.0) + log(1.0 + exp(-abs(x)));
  }

  fn erf(x: f32) -> f32 {
    let size = abs(x);
    let t = 1.0 / (1.0 + 0.3275911 * size);
    let series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t +
      0.254829592) * t;
    return sign(x) * (1.0 - series * exp(-min(size * size, 80.0)));
  }
`;
