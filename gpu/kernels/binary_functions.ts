// Functions of two elements as WGSL, by the names of the engine's op `binary`. Left out, because WGSL would give
// another number or none: remainders of floats, and quotients of integers, where a divisor of 0 is an error.

import { wgsl } from "../wgsl.ts";
import { FLOAT_TESTS, QUOTIENT } from "./unary_functions.ts";

/** Expressions of `a` and `b` on f32. */
export const BINARY_FLOAT: Readonly<Record<string, string>> = {
  add: "a + b",
  sub: "a - b",
  mul: "a * b",
  div: "quotient(a, b)",
  min: "select(min(a, b), a + b, is_nan(a) || is_nan(b))",
  max: "select(max(a, b), a + b, is_nan(a) || is_nan(b))",
  prelu: "select(select(a, b * a, a < 0.0), a, is_nan(a))",
};

/** Expressions of `a` and `b` on i32 and u32; they wrap. */
export const BINARY_INTEGER: Readonly<Record<string, string>> = {
  add: "a + b",
  sub: "a - b",
  mul: "a * b",
  min: "min(a, b)",
  max: "max(a, b)",
  bit_and: "a & b",
  bit_or: "a | b",
  bit_xor: "a ^ b",
};

/** Expressions of `a` and `b` on whole numbers without a sign, of up to 32 bits. */
export const BINARY_UNSIGNED: Readonly<Record<string, string>> = {
  shift_left: "select(a << (b & 31u), 0u, b > 31u)",
  shift_right: "select(a >> (b & 31u), 0u, b > 31u)",
};

/** Expressions of `a` and `b` on whole numbers of 64 bits, the low word first. */
export const BINARY_WIDE: Readonly<Record<string, string>> = {
  add: "sum(a, b)",
  sub: "sum(a, sum(~b, vec2<u32>(1u, 0u)))",
  mul: "product(a, b)",
  min: "select(b, a, is_less(a, b))",
  max: "select(b, a, is_less(b, a))",
  bit_and: "a & b",
  bit_or: "a | b",
  bit_xor: "a ^ b",
  equal: "all(a == b)",
  greater: "is_less(b, a)",
  greater_equal: "!is_less(a, b)",
  less: "is_less(a, b)",
  less_equal: "!is_less(b, a)",
};

/** The functions that those call. */
export function wideFunctions({ signed }: { readonly signed: boolean }): string {
  const high = (x: string) => signed ? `bitcast<i32>(${x}.y)` : `${x}.y`;
  return wgsl`
    fn sum(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
      let low = a.x + b.x;
      return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
    }

    // The low words by halves.
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

    fn is_less(a: vec2<u32>, b: vec2<u32>) -> bool {
      return ${high("a")} < ${high("b")} || (a.y == b.y && a.x < b.x);
    }
  `;
}

/** Expressions whose result is a truth value, on whole numbers of up to 32 bits. */
export const BINARY_TESTS: Readonly<Record<string, string>> = {
  equal: "a == b",
  greater: "a > b",
  greater_equal: "a >= b",
  less: "a < b",
  less_equal: "a <= b",
};

/** The same on f32; comparisons with NaN do not hold, which compilers need not keep to. */
export const BINARY_FLOAT_TESTS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(BINARY_TESTS).map((
    [kind, test],
  ) => [kind, `(${test}) && !is_nan(a) && !is_nan(b)`]),
);

/** Expressions on truth values. */
export const BINARY_BOOL: Readonly<Record<string, string>> = {
  and: "a && b",
  or: "a || b",
  xor: "a != b",
  equal: "a == b",
};

/** The functions that the expressions call. */
export const BINARY_FUNCTIONS: string = wgsl`
  ${FLOAT_TESTS}

  ${QUOTIENT}
`;

/**
 * `power(x, y)` as C has it: WGSL's pow takes no negative base. Whole exponents up to 64 are multiplied out, by
 * squaring, which is exact where powers are; others go through logarithms.
 */
export const POWER_FUNCTION: string = wgsl`
  ${FLOAT_TESTS}

  fn is_odd(y: f32) -> bool {
    return y == floor(y) && abs(y) < 16777216.0 && (i32(abs(y)) & 1) == 1;
  }

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
`;
