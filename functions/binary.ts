// Functions of two elements by name: the kinds of the op `binary`. One record is all that a function needs, beside
// what its expressions call. Left out in WGSL, because it would give another number or none: remainders of floats, and
// quotients of integers, where a divisor of 0 is an error.

import { type BinaryFunction, numbered } from "./record.ts";
import { divisor, floorMod, power, wholeMod, wholePower } from "./special.ts";

const define = <Name extends string>(table: Readonly<Record<Name, BinaryFunction>>) => table;

/** WGSL on whole numbers of up to 32 bits. */
const whole = (text: string) => ({ signed: text, unsigned: text });

type Comparable = number | bigint;

/** A comparison; of unsigned numbers of 64 bits the bit of the sign is turned. One with NaN does not hold. */
function comparison(
  operator: string,
  holds: (x: Comparable, y: Comparable) => boolean,
  { simd, wide, bool }: { readonly simd: string; readonly wide: string; readonly bool?: string },
): BinaryFunction {
  const asNumber = (x: number, y: number) => Number(holds(x, y));
  const test = `a ${operator} b`;
  return {
    float: asNumber,
    integer: asNumber,
    bool: asNumber,
    bigint: (x, y) => BigInt(holds(x, y)),
    test: true,
    simd: `f32x4.${simd}(v, w)`,
    i64: `(a ^ sign) ${operator} (b ^ sign) ? 1 : 0`,
    f64: test,
    // Which compilers need not keep to.
    wgsl: `(${test}) && !is_nan(a) && !is_nan(b)`,
    wgslOf: { ...whole(test), wide, ...bool !== undefined && { bool } },
  };
}

// Two parameters, whatever else a caller passes on: Math.min would take it into account.
const least = (x: number, y: number) => Math.min(x, y);
const most = (x: number, y: number) => Math.max(x, y);

const TABLE = define({
  add: {
    float: (x, y) => x + y,
    integer: (x, y) => x + y,
    bigint: (x, y) => x + y,
    simd: "f32x4.add(v, w)",
    i64: "a + b",
    f64: "a + b",
    wgsl: "a + b",
    wgslOf: { ...whole("a + b"), wide: "sum(a, b)" },
    onnx: ["Add", [1, 6, 7]],
  },
  sub: {
    float: (x, y) => x - y,
    integer: (x, y) => x - y,
    bigint: (x, y) => x - y,
    simd: "f32x4.sub(v, w)",
    i64: "a - b",
    f64: "a - b",
    wgsl: "a - b",
    wgslOf: { ...whole("a - b"), wide: "sum(a, sum(~b, vec2<u32>(1u, 0u)))" },
    onnx: ["Sub", [1, 6, 7]],
  },
  mul: {
    float: (x, y) => x * y,
    integer: Math.imul,
    bigint: (x, y) => x * y,
    simd: "f32x4.mul(v, w)",
    i64: "a * b",
    f64: "a * b",
    wgsl: "a * b",
    wgslOf: { ...whole("a * b"), wide: "product(a, b)" },
    onnx: ["Mul", [1, 6, 7]],
  },
  // Whole quotients are cut towards 0, as in C.
  div: {
    float: (x, y) => x / y,
    integer: (x, y) => Math.trunc(x / divisor(y)),
    bigint: (x, y) => x / divisor(y),
    simd: "f32x4.div(v, w)",
    i64: "quotient(type, a, b)",
    f64: "a / b",
    wgsl: "quotient(a, b)",
    onnx: ["Div", [1, 6, 7]],
  },
  // The remainder that has the divisor's sign.
  mod: {
    float: floorMod,
    integer: (x, y) => floorMod(x, divisor(y)),
    bigint: wholeMod,
    i64: "floorMod(type, a, b)",
  },
  // The remainder that has the dividend's sign.
  fmod: {
    float: (x, y) => x % y,
    integer: (x, y) => x % divisor(y),
    bigint: (x, y) => x % divisor(y),
    i64: "remainder(type, a, b)",
    f64: "NativeMath.mod(a, b)",
  },
  min: {
    float: least,
    integer: least,
    bigint: (x, y) => x < y ? x : y,
    simd: "f32x4.min(v, w)",
    i64: "(a ^ sign) < (b ^ sign) ? a : b",
    f64: "min<f64>(a, b)",
    wgsl: "select(min(a, b), a + b, is_nan(a) || is_nan(b))",
    wgslOf: { ...whole("min(a, b)"), wide: "select(b, a, is_less(a, b))" },
  },
  max: {
    float: most,
    integer: most,
    bigint: (x, y) => x > y ? x : y,
    simd: "f32x4.max(v, w)",
    i64: "(a ^ sign) > (b ^ sign) ? a : b",
    f64: "max<f64>(a, b)",
    wgsl: "select(max(a, b), a + b, is_nan(a) || is_nan(b))",
    wgslOf: { ...whole("max(a, b)"), wide: "select(b, a, is_less(b, a))" },
  },
  // Whole powers of whole numbers are exact and wrap.
  pow: {
    float: power,
    integer: (x, y) => Number(BigInt.asIntN(32, wholePower(BigInt(x), BigInt(y)))),
    bigint: wholePower,
    mixed: true,
    simd: "power4(v, w)",
    wgsl: "power(a, b)",
  },
  prelu: {
    float: (x, slope) => x < 0 ? slope * x : x,
    integer: (x, slope) => x < 0 ? Math.imul(slope, x) : x,
    bigint: (x, slope) => x < 0n ? slope * x : x,
    simd: "negative(f32x4.mul(v, w), v)",
    wgsl: "select(select(a, b * a, a < 0.0), a, is_nan(a))",
  },
  equal: comparison("==", (x, y) => x === y, { simd: "eq", wide: "all(a == b)", bool: "a == b" }),
  greater: {
    ...comparison(">", (x, y) => x > y, { simd: "gt", wide: "is_less(b, a)" }),
    onnx: ["Greater", [1, 7]],
  },
  greater_equal: {
    ...comparison(">=", (x, y) => x >= y, { simd: "ge", wide: "!is_less(a, b)" }),
    onnx: ["GreaterOrEqual", [12]],
  },
  less: {
    ...comparison("<", (x, y) => x < y, { simd: "lt", wide: "is_less(a, b)" }),
    onnx: ["Less", [1, 7]],
  },
  less_equal: {
    ...comparison("<=", (x, y) => x <= y, { simd: "le", wide: "!is_less(b, a)" }),
    onnx: ["LessOrEqual", [12]],
  },
  and: { bool: (x, y) => x & y, i64: "a & b", wgslOf: { bool: "a && b" }, onnx: ["And", [1, 7]] },
  or: { bool: (x, y) => x | y, i64: "a | b", wgslOf: { bool: "a || b" }, onnx: ["Or", [1, 7]] },
  xor: { bool: (x, y) => x ^ y, i64: "a ^ b", wgslOf: { bool: "a != b" }, onnx: ["Xor", [1, 7]] },
  bit_and: {
    integer: (x, y) => x & y,
    bigint: (x, y) => x & y,
    i64: "a & b",
    wgslOf: { ...whole("a & b"), wide: "a & b" },
    onnx: ["BitwiseAnd", [18]],
  },
  bit_or: {
    integer: (x, y) => x | y,
    bigint: (x, y) => x | y,
    i64: "a | b",
    wgslOf: { ...whole("a | b"), wide: "a | b" },
    onnx: ["BitwiseOr", [18]],
  },
  bit_xor: {
    integer: (x, y) => x ^ y,
    bigint: (x, y) => x ^ y,
    i64: "a ^ b",
    wgslOf: { ...whole("a ^ b"), wide: "a ^ b" },
    onnx: ["BitwiseXor", [18]],
  },
  shift_left: {
    integer: (x, y) => y > 31 ? 0 : x << y,
    bigint: (x, y) => y > 63n ? 0n : x << y,
    i64: "<u64>b > 63 ? 0 : a << b",
    wgslOf: { unsigned: "select(a << (b & 31u), 0u, b > 31u)" },
  },
  // Of numbers without a sign only.
  shift_right: {
    integer: (x, y) => y > 31 ? 0 : x >>> y,
    bigint: (x, y) => y > 63n ? 0n : x >> y,
    i64: "<u64>b > 63 ? 0 : <i64>(<u64>a >> <u64>b)",
    wgslOf: { unsigned: "select(a >> (b & 31u), 0u, b > 31u)" },
  },
});

/** Name of a function of two elements. */
export type BinaryName = keyof typeof TABLE;

/** Every function by name. */
export const BINARY: Readonly<Record<BinaryName, BinaryFunction>> = TABLE;

/** Names of the functions. */
export const BINARY_NAMES: readonly BinaryName[] = Object.keys(TABLE) as BinaryName[];

/** Their numbers in instructions. */
export const BINARY_NUMBERS: Readonly<Record<BinaryName, number>> = numbered(TABLE);
