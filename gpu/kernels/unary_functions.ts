// Functions of one element as WGSL, by the names of the engine's op `unary`. WGSL promises nothing about NaN in
// comparisons, min and max, so what depends on it looks at the bits; and little about the accuracy of its own
// functions, so those that lose digits near 0 or overflow before their result does are written out here. Left out:
// functions whose results would still not be accurate enough over their domain.

import { wgsl } from "../wgsl.ts";
import { ANGLE_FUNCTIONS } from "./angle_functions.ts";

/** Functions of `x`, `params.alpha` and `params.beta` on f32, which NaN passes through. */
const FLOAT: Readonly<Record<string, string>> = {
  abs: "abs(x)",
  neg: "-x",
  sign: "sign(x)",
  relu: "max(x, 0.0)",
  ceil: "ceil(x)",
  floor: "floor(x)",
  round: "round(x)",
  exp: "wide_exp(x)",
  log: "safe_log(x)",
  sqrt: "sqrt(x)",
  root: "select(sqrt(x), abs(x), is_infinite(x))",
  reciprocal: "1.0 / x",
  sin: "sin_of(x)",
  cos: "cos_of(x)",
  tan: "tan_of(x)",
  atan: "atan(x)",
  sinh: "safe_sinh(x)",
  cosh: "safe_cosh(x)",
  tanh: "safe_tanh(x)",
  asinh: "safe_asinh(x)",
  acosh: "safe_acosh(x)",
  atanh: "safe_atanh(x)",
  erf: "erf(x)",
  sigmoid: "sigmoid(x)",
  silu: "x * sigmoid(params.alpha * x)",
  gelu: "0.5 * x * (1.0 + erf(x * 0.70710678))",
  gelu_tanh: "x * sigmoid(1.5957691 * (x + 0.044715 * x * x * x))",
  softplus: "softplus(x)",
  softsign: "quotient(x, 1.0 + abs(x))",
  mish: "x * safe_tanh(softplus(x))",
  hard_sigmoid: "clamp(params.alpha * x + params.beta, 0.0, 1.0)",
  hard_swish: "x * clamp(x / 6.0 + 0.5, 0.0, 1.0)",
  elu: "select(x, params.alpha * expm1(x), x < 0.0)",
  celu: "select(x, params.alpha * expm1(x / params.alpha), x < 0.0)",
  selu: "params.beta * select(params.alpha * expm1(x), x, x > 0.0)",
  leaky_relu: "select(x, params.alpha * x, x < 0.0)",
};

/** The same, of which NaN is no case: comparisons with it do not hold. */
const FLOAT_BY_CASES: Readonly<Record<string, string>> = {
  thresholded_relu: "select(0.0, x, x > params.alpha)",
  shrink:
    "select(select(0.0, x - params.beta, x > params.alpha), x + params.beta, x < -params.alpha)",
};

/** Expressions of `x`, `params.alpha` and `params.beta` on f32. */
export const UNARY_FLOAT: Readonly<Record<string, string>> = {
  ...withNan(FLOAT, "x"),
  ...withNan(FLOAT_BY_CASES, "0.0"),
};

function withNan(expressions: Readonly<Record<string, string>>, nan: string) {
  return Object.fromEntries(
    Object.entries(expressions).map((
      [kind, expression],
    ) => [kind, `select(${expression}, ${nan}, is_nan(x))`]),
  );
}

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

/** A quotient by numbers beyond 2^126 too, whose reciprocal is a denormal, which devices may take as 0. */
export const QUOTIENT: string = wgsl`
  fn quotient(a: f32, b: f32) -> f32 {
    let s = select(1.0, 2.3283064e-10, abs(b) > 8.5e37);
    return (a * s) / (b * s);
  }
`;

/** A logarithm of denormals too, where the device does not take them as 0; of negative numbers NaN. */
export const SAFE_LOG: string = wgsl`
  fn nan_like(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u);
  }

  fn safe_log(x: f32) -> f32 {
    let tiny = abs(x) < 1.17549435e-38;
    let y = log(select(x, x * 16777216.0, tiny)) - select(0.0, 16.635532, tiny);
    return select(y, nan_like(x), x < 0.0);
  }
`;

/** The functions that an expression calls. */
export function unaryFunctions(expression: string): string {
  return /\b(sin|cos|tan)_of\b/.test(expression) ? `${FLOAT_TESTS}\n${ANGLE_FUNCTIONS}` : FUNCTIONS;
}

const FUNCTIONS = wgsl`
  ${FLOAT_TESTS}

  ${QUOTIENT}

  ${SAFE_LOG}

  // As wideExp4 of wasm/assembly/exp.ts: WGSL's own loses digits as x grows. 2^n in two factors.
  fn wide_exp(x: f32) -> f32 {
    let v = clamp(x, -104.0, 89.0);
    let n = round(v * 1.44269504);
    let r = v - n * 0.693359375 + n * 2.12194440e-4;
    let p = (((((1.3814610e-3 * r + 8.3687110e-3) * r + 4.1668389e-2) * r + 0.16666521) * r +
      0.49999994) * r + 1.0) * r + 1.0;
    let half = i32(n) >> 1u;
    return p * power_of_2(half) * power_of_2(i32(n) - half);
  }

  fn power_of_2(n: i32) -> f32 {
    return bitcast<f32>((n + 127) << 23u);
  }

  // Of what is not negative. Near 0 it is 2 atanh(x / (2 + x)), since compilers may take (1 + x) - 1 for x.
  fn log1p(x: f32) -> f32 {
    let s = x / (2.0 + x);
    let z = s * s;
    let near = 2.0 * s * ((((z / 9.0 + 1.0 / 7.0) * z + 0.2) * z + 1.0 / 3.0) * z + 1.0);
    return select(log(1.0 + x), near, x < 0.4);
  }

  // An odd polynomial near 0, of Cephes, and exponentials of negative numbers beyond.
  fn safe_tanh(x: f32) -> f32 {
    let z = x * x;
    let p = (((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z +
      1.33314422036e-1) * z - 3.33332819422e-1;
    let e = exp(-2.0 * abs(x));
    return select(sign(x) * (1.0 - e) / (1.0 + e), x + x * z * p, abs(x) < 0.625);
  }

  fn expm1(x: f32) -> f32 {
    return safe_tanh(0.5 * x) * (exp(x) + 1.0);
  }

  // Half of a normal number, by its exponent: compilers may take (0.5 * h) * h for 0.5 * (h * h).
  fn half_of(h: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(h) - 0x800000u);
  }

  // exp(x / 2) twice: exp(x) overflows before its half does.
  fn safe_sinh(x: f32) -> f32 {
    let z = x * x;
    let near = x + x * z * (((2.7557319e-6 * z + 1.9841270e-4) * z + 8.3333333e-3) * z + 1.6666667e-1);
    let h = exp(0.5 * abs(x));
    return select(sign(x) * (half_of(h) * h - 0.5 / h / h), near, abs(x) < 1.0);
  }

  fn safe_cosh(x: f32) -> f32 {
    let h = exp(0.5 * abs(x));
    return half_of(h) * h + 0.5 / h / h;
  }

  fn safe_asinh(x: f32) -> f32 {
    let size = abs(x);
    let z = size * size;
    return sign(x) * select(log1p(size + z / (1.0 + sqrt(1.0 + z))), log(size) + 0.69314718, size > 1e9);
  }

  fn safe_acosh(x: f32) -> f32 {
    let t = x - 1.0;
    let y = select(log1p(t + sqrt(t * (t + 2.0))), log(x) + 0.69314718, x > 1e9);
    return select(y, nan_like(x), x < 1.0);
  }

  fn safe_atanh(x: f32) -> f32 {
    let size = abs(x);
    let y = 0.5 * sign(x) * log1p(2.0 * size / (1.0 - size));
    return select(y, nan_like(x), size > 1.0);
  }

  fn sigmoid(x: f32) -> f32 {
    let e = exp(-abs(x));
    return select(e, 1.0, x >= 0.0) / (1.0 + e);
  }

  fn softplus(x: f32) -> f32 {
    return max(x, 0.0) + log1p(exp(-abs(x)));
  }

  // x · P(x²) / Q(x²) on -4..4, the rational approximation of TensorFlow and Eigen: 5e-7 of the result. Beyond it is
  // exactly 1, since x · (1 - erf) must be 0 for any x.
  fn erf(x: f32) -> f32 {
    let v = clamp(x, -4.0, 4.0);
    let z = v * v;
    let p = (((((-2.72614225801306e-10 * z + 2.77068142495902e-8) * z - 2.10102402082508e-6) * z -
      5.69250639462346e-5) * z - 7.34990630326855e-4) * z - 2.95459980854025e-3) * z -
      1.60960333262415e-2;
    let q = (((-1.45660718464996e-5 * z - 2.13374055278905e-4) * z - 1.68282697438203e-3) * z -
      7.37332916720468e-3) * z - 1.42647390514189e-2;
    return select(v * p / q, sign(x), abs(x) >= 4.0);
  }
`;
