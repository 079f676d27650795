// The WGSL of functions of single elements: the expressions of functions/ as functions, and what those call. WGSL
// promises nothing about NaN in comparisons, min and max, so what depends on it looks at the bits; and little about
// the accuracy of its own functions, so those that lose digits near 0 or overflow before their result does are written
// out here.

import { BINARY, type BinaryName } from "../../functions/binary.ts";
import type { OtherFamily, UnaryFunction } from "../../functions/record.ts";
import { UNARY, type UnaryName } from "../../functions/unary.ts";
import { float, wgsl } from "../wgsl.ts";
import { ANGLE_FUNCTIONS } from "./angle_functions.ts";

/** Families of types that one expression serves. */
export type Family = "float" | OtherFamily;

const TYPES: Readonly<Record<Family, string>> = {
  ...{ float: "f32", bool: "bool", signed: "i32", unsigned: "u32", wide: "vec2<u32>" },
};

const ORDERS: Readonly<Record<"signed" | "unsigned", string>> = {
  signed: isLess((x) => `bitcast<i32>(${x}.y)`),
  unsigned: isLess((x) => `${x}.y`),
};

function expressionOf(
  { wgsl, wgslOf }: Pick<UnaryFunction, "wgsl" | "wgslOf">,
  family: Family,
): string | undefined {
  return family === "float" ? wgsl : wgslOf?.[family];
}

/** `unary(x, alpha, beta)` and what it calls; undefined where WGSL has none. */
export function unaryFunction(kind: UnaryName, family: Family): string | undefined {
  const text = unaryText(kind, family);
  return text && withCalled(text);
}

function unaryText(kind: UnaryName, family: Family): string | undefined {
  const { test, ofNan = "x" } = UNARY[kind], expression = expressionOf(UNARY[kind], family);
  if (expression === undefined) return undefined;
  const value = family === "float" && !test
    ? `select(${expression}, ${ofNan}, is_nan(x))`
    : expression;
  const type = TYPES[family];
  return `fn unary(x: ${type}, alpha: f32, beta: f32) -> ${
    test ? "bool" : type
  } { return ${value}; }`;
}

/** `binary(a, b)` and what it calls; undefined where WGSL has none. `signed`: of wide numbers, their order. */
export function binaryFunction(
  kind: BinaryName,
  family: Family,
  { signed }: { readonly signed: boolean },
): string | undefined {
  const own = binaryText(kind, family);
  if (own === undefined) return undefined;
  const text = withCalled(own);
  return /\bis_less\(/.test(text)
    ? [ORDERS[signed ? "signed" : "unsigned"], text].join("\n")
    : text;
}

function binaryText(kind: BinaryName, family: Family): string | undefined {
  const { test } = BINARY[kind], expression = expressionOf(BINARY[kind], family);
  if (expression === undefined) return undefined;
  const type = TYPES[family];
  return `fn binary(a: ${type}, b: ${type}) -> ${test ? "bool" : type} { return ${expression}; }`;
}

/** The text of a function of floats of one or of two elements: `unary_kind` and `binary_kind`; undefined where WGSL has none. */
function floatFunction(kind: string): string | undefined {
  const isUnary = Object.hasOwn(UNARY, kind);
  const name = isUnary ? "unary" : "binary";
  const own = isUnary
    ? unaryText(kind as UnaryName, "float")
    : binaryText(kind as BinaryName, "float");
  return own?.replace(`fn ${name}(`, `fn ${name}_${kind}(`);
}

/** `unary_kind(x, alpha, beta)` and `binary_kind(a, b)` of several functions of floats, and what they call. */
export function floatFunctions(kinds: readonly string[]): string | undefined {
  const texts = [...new Set(kinds)].map(floatFunction);
  return texts.every((text) => text !== undefined) ? withCalled(texts.join("\n")) : undefined;
}

/** A function of scalars on each lane of vectors; further arguments are the same for all. */
export function lanes(
  name: string,
  { vectors, others = "" }: {
    readonly vectors: readonly string[];
    readonly others?: string | undefined;
  },
): string {
  const calls = ["x", "y", "z", "w"].map((lane) =>
    `${name}(${vectors.map((vector) => `${vector}.${lane}`).join(", ")}${others})`
  );
  return `vec4<f32>(${calls.join(", ")})`;
}

/** `activation(vec4<f32>)`, by the name of a function of one element, at an alpha. */
export function activationFunction(kind: string, alpha = 1): string {
  const whole = lanes("unary", { vectors: ["x"], others: `, ${float(alpha)}, 0.0` });
  return [
    unaryFunction(kind as UnaryName, "float")!,
    `fn activation(x: vec4<f32>) -> vec4<f32> { return ${whole}; }`,
  ].join("\n");
}

/** A function behind those that it calls. */
function withCalled(text: string): string {
  const found = new Set<string>();
  const look = (caller: string) => {
    for (const [, name] of caller.matchAll(/\b(\w+)\(/g)) {
      const called = Object.hasOwn(FUNCTIONS, name!) ? FUNCTIONS[name!]! : undefined;
      if (called === undefined || found.has(called)) continue;
      found.add(called);
      look(called);
    }
  };
  look(text);
  return [...found, text].join("\n");
}

/** Of whole numbers of 64 bits, by how their high words are ordered. */
function isLess(high: (x: string) => string): string {
  return wgsl`
    fn is_less(a: vec2<u32>, b: vec2<u32>) -> bool {
      return ${high("a")} < ${high("b")} || (a.y == b.y && a.x < b.x);
    }
  `;
}

/** Tests of the bits of a float. */
const BIT_TESTS = {
  is_nan: wgsl`
    fn is_nan(x: f32) -> bool {
      return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    }
  `,
  is_infinite: wgsl`
    fn is_infinite(x: f32) -> bool {
      return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
    }
  `,
};

/** `is_nan` and `is_infinite`. */
export const FLOAT_TESTS: string = Object.values(BIT_TESTS).join("\n");

const LOGARITHMS = {
  nan_like: wgsl`
    fn nan_like(x: f32) -> f32 {
      return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u);
    }
  `,
  safe_log: wgsl`
    fn safe_log(x: f32) -> f32 {
      let tiny = abs(x) < 1.17549435e-38;
      let y = log(select(x, x * 16777216.0, tiny)) - select(0.0, 16.635532, tiny);
      return select(y, nan_like(x), x < 0.0);
    }
  `,
};

/** A logarithm of denormals too, where the device does not take them as 0; of negative numbers NaN. */
export const SAFE_LOG: string = Object.values(LOGARITHMS).join("\n");

/** Functions that expressions call, by name. */
const FUNCTIONS: Readonly<Record<string, string>> = {
  ...BIT_TESTS,
  ...LOGARITHMS,
  ...{ sin_of: ANGLE_FUNCTIONS, cos_of: ANGLE_FUNCTIONS, tan_of: ANGLE_FUNCTIONS },
  // A quotient by numbers beyond 2^126 too, whose reciprocal is a denormal, which devices may take as 0.
  quotient: wgsl`
    fn quotient(a: f32, b: f32) -> f32 {
      let s = select(1.0, 2.3283064e-10, abs(b) > 8.5e37);
      return (a * s) / (b * s);
    }
  `,
  // As wideExp4 of wasm/assembly/exp.ts: WGSL's own loses digits as x grows. 2^n in two factors.
  wide_exp: wgsl`
    fn wide_exp(x: f32) -> f32 {
      let v = clamp(x, -104.0, 89.0);
      let n = round(v * 1.44269504);
      let r = v - n * 0.693359375 + n * 2.12194440e-4;
      let p = (((((1.3814610e-3 * r + 8.3687110e-3) * r + 4.1668389e-2) * r + 0.16666521) * r +
        0.49999994) * r + 1.0) * r + 1.0;
      let half = i32(n) >> 1u;
      return p * power_of_2(half) * power_of_2(i32(n) - half);
    }
  `,
  power_of_2: wgsl`
    fn power_of_2(n: i32) -> f32 {
      return bitcast<f32>((n + 127) << 23u);
    }
  `,
  // Of what is not negative. Near 0 it is 2 atanh(x / (2 + x)), since compilers may take (1 + x) - 1 for x.
  log1p: wgsl`
    fn log1p(x: f32) -> f32 {
      let s = x / (2.0 + x);
      let z = s * s;
      let near = 2.0 * s * ((((z / 9.0 + 1.0 / 7.0) * z + 0.2) * z + 1.0 / 3.0) * z + 1.0);
      return select(log(1.0 + x), near, x < 0.4);
    }
  `,
  // An odd polynomial near 0, of Cephes, and exponentials of negative numbers beyond.
  safe_tanh: wgsl`
    fn safe_tanh(x: f32) -> f32 {
      let z = x * x;
      let p = (((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z +
        1.33314422036e-1) * z - 3.33332819422e-1;
      let e = exp(-2.0 * abs(x));
      return select(sign(x) * (1.0 - e) / (1.0 + e), x + x * z * p, abs(x) < 0.625);
    }
  `,
  expm1: wgsl`
    fn expm1(x: f32) -> f32 {
      return safe_tanh(0.5 * x) * (exp(x) + 1.0);
    }
  `,
  // Half of a normal number, by its exponent: compilers may take (0.5 * h) * h for 0.5 * (h * h).
  half_of: wgsl`
    fn half_of(h: f32) -> f32 {
      return bitcast<f32>(bitcast<u32>(h) - 0x800000u);
    }
  `,
  // exp(x / 2) twice: exp(x) overflows before its half does.
  safe_sinh: wgsl`
    fn safe_sinh(x: f32) -> f32 {
      let z = x * x;
      let near = x + x * z * (((2.7557319e-6 * z + 1.9841270e-4) * z + 8.3333333e-3) * z + 1.6666667e-1);
      let h = exp(0.5 * abs(x));
      return select(sign(x) * (half_of(h) * h - 0.5 / h / h), near, abs(x) < 1.0);
    }
  `,
  safe_cosh: wgsl`
    fn safe_cosh(x: f32) -> f32 {
      let h = exp(0.5 * abs(x));
      return half_of(h) * h + 0.5 / h / h;
    }
  `,
  safe_asinh: wgsl`
    fn safe_asinh(x: f32) -> f32 {
      let size = abs(x);
      let z = size * size;
      return sign(x) * select(log1p(size + z / (1.0 + sqrt(1.0 + z))), log(size) + 0.69314718, size > 1e9);
    }
  `,
  safe_acosh: wgsl`
    fn safe_acosh(x: f32) -> f32 {
      let t = x - 1.0;
      let y = select(log1p(t + sqrt(t * (t + 2.0))), log(x) + 0.69314718, x > 1e9);
      return select(y, nan_like(x), x < 1.0);
    }
  `,
  safe_atanh: wgsl`
    fn safe_atanh(x: f32) -> f32 {
      let size = abs(x);
      let y = 0.5 * sign(x) * log1p(2.0 * size / (1.0 - size));
      return select(y, nan_like(x), size > 1.0);
    }
  `,
  sigmoid: wgsl`
    fn sigmoid(x: f32) -> f32 {
      let e = exp(-abs(x));
      return select(e, 1.0, x >= 0.0) / (1.0 + e);
    }
  `,
  softplus: wgsl`
    fn softplus(x: f32) -> f32 {
      return max(x, 0.0) + log1p(exp(-abs(x)));
    }
  `,
  // x · P(x²) / Q(x²) on -4..4, the rational approximation of TensorFlow and Eigen: 5e-7 of the result. Beyond it is
  // exactly 1, since x · (1 - erf) must be 0 for any x.
  erf: wgsl`
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
  `,
  is_odd: wgsl`
    fn is_odd(y: f32) -> bool {
      return y == floor(y) && abs(y) < 16777216.0 && (i32(abs(y)) & 1) == 1;
    }
  `,
  // As C has it: WGSL's pow takes no negative base. Whole exponents up to 64 are multiplied out, by squaring, which is
  // exact where powers are; others go through logarithms.
  power: wgsl`
    fn power(x: f32, y: f32) -> f32 {
      if (x == 1.0 || y == 0.0) { return 1.0; }
      if (is_nan(x) || is_nan(y)) { return x + y; }
      if (x == -1.0 && is_infinite(y)) { return 1.0; }
      if (x == 0.0) {
        let value = select(x, 1.0 / x, y < 0.0);
        return select(abs(value), value, is_odd(y));
      }
      if (y == floor(y) && abs(y) <= 64.0) {
        var rest = u32(abs(y));
        var square = x;
        var result = 1.0;
        while (rest > 0u) {
          if ((rest & 1u) == 1u) { result *= square; }
          square *= square;
          rest >>= 1u;
        }
        return select(result, 1.0 / result, y < 0.0);
      }
      let tiny = abs(x) < 1.17549435e-38;
      let size = pow(abs(x) * select(1.0, 16777216.0, tiny), y) * select(1.0, exp2(-24.0 * y), tiny);
      if (x >= 0.0) { return size; }
      // A negative number has no power that is not whole: NaN, which WGSL has no literal for.
      if (y != floor(y)) { return select(sqrt(x), size, is_infinite(x)); }
      return select(size, -size, is_odd(y));
    }
  `,
  sum: wgsl`
    fn sum(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
      let low = a.x + b.x;
      return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
    }
  `,
  // The low words by halves.
  product: wgsl`
    fn product(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
      let p = a.x & 0xffffu;
      let q = a.x >> 16u;
      let r = b.x & 0xffffu;
      let s = b.x >> 16u;
      let middle = q * r + ((p * r) >> 16u);
      let other = p * s + (middle & 0xffffu);
      let high = q * s + (middle >> 16u) + (other >> 16u);
      return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);
    }
  `,
};
