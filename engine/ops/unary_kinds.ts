// Functions of one element by name, for `unary`. Floats are computed in float64; whole numbers of up to
// 32 bits as numbers and wider ones as bigint, both wrapping when they are stored. `domain` is where
// cases draw from, so that every result is finite.

import { activations, erf } from "./activations.ts";

/** What one kind is on each family of types; an absent function: not defined there. */
export interface UnaryKind {
  /** On floats. `alpha` and `beta` are attributes of the node. */
  readonly float?: (x: number, alpha: number, beta: number) => number;
  /** On whole numbers of up to 32 bits. */
  readonly integer?: (x: number) => number;
  /** On 64-bit integers. */
  readonly bigint?: (x: bigint) => bigint;
  /** On truth values, 0 or 1. */
  readonly bool?: (x: number) => number;
  /** True if the result is a truth value whatever the input is. */
  readonly test?: boolean;
  /** Where the function is finite; default -3..3. */
  readonly domain?: readonly [number, number];
}

const asFloat = (float: (x: number, alpha: number, beta: number) => number): UnaryKind => ({
  float,
});
const onDomain = (
  float: (x: number) => number,
  min: number,
  max: number,
): UnaryKind => ({ float, domain: [min, max] });

/** Every kind by name. */
export const unaryKinds = {
  abs: { float: Math.abs, integer: Math.abs, bigint: (x) => x < 0n ? -x : x },
  neg: { float: (x) => -x, integer: (x) => -x, bigint: (x) => -x },
  sign: { float: Math.sign, integer: Math.sign, bigint: (x) => x > 0n ? 1n : x < 0n ? -1n : 0n },
  relu: {
    // NaN stays NaN.
    float: (x) => x < 0 ? 0 : x,
    integer: (x) => Math.max(0, x),
    bigint: (x) => x < 0n ? 0n : x,
  },
  bit_not: { integer: (x) => ~x, bigint: (x) => ~x },
  not: { bool: (x) => 1 - x },
  is_nan: { float: (x) => Number(Number.isNaN(x)), test: true },
  is_infinite: {
    float: (x, negative, positive) =>
      Number((x === Infinity && positive !== 0) || (x === -Infinity && negative !== 0)),
    test: true,
  },
  ceil: asFloat(Math.ceil),
  floor: asFloat(Math.floor),
  round: asFloat(roundToEven),
  exp: asFloat(Math.exp),
  log: onDomain(Math.log, 0.1, 5),
  sqrt: onDomain(Math.sqrt, 0, 9),
  // C's pow(x, 0.5): of -∞ it is ∞, of -0 it is 0.
  root: onDomain((x) => x === -Infinity ? Infinity : Math.sqrt(x) + 0, 0, 9),
  reciprocal: onDomain((x) => 1 / x, 0.5, 5),
  sin: asFloat(Math.sin),
  cos: asFloat(Math.cos),
  tan: onDomain(Math.tan, -1.4, 1.4),
  asin: onDomain(Math.asin, -1, 1),
  acos: onDomain(Math.acos, -1, 1),
  atan: asFloat(Math.atan),
  sinh: asFloat(Math.sinh),
  cosh: asFloat(Math.cosh),
  tanh: asFloat(Math.tanh),
  asinh: asFloat(Math.asinh),
  acosh: onDomain(Math.acosh, 1, 9),
  atanh: onDomain(Math.atanh, -0.95, 0.95),
  erf: asFloat(erf),
  sigmoid: asFloat(activations.sigmoid),
  silu: asFloat((x, alpha) => x / (1 + Math.exp(-alpha * x))),
  gelu: asFloat(activations.gelu),
  gelu_tanh: asFloat(activations.gelu_tanh),
  softplus: asFloat(softplus),
  softsign: asFloat((x) => x / (1 + Math.abs(x))),
  mish: asFloat((x) => x * Math.tanh(softplus(x))),
  hard_sigmoid: asFloat((x, alpha, beta) => Math.max(0, Math.min(1, alpha * x + beta))),
  hard_swish: asFloat((x) => x * Math.max(0, Math.min(1, x / 6 + 0.5))),
  elu: asFloat((x, alpha) => x < 0 ? alpha * Math.expm1(x) : x),
  celu: asFloat((x, alpha) => x < 0 ? alpha * Math.expm1(x / alpha) : x),
  selu: asFloat((x, alpha, gamma) => gamma * (x > 0 ? x : alpha * Math.expm1(x))),
  leaky_relu: asFloat((x, alpha) => x < 0 ? alpha * x : x),
  thresholded_relu: asFloat((x, alpha) => x > alpha ? x : 0),
  shrink: asFloat((x, lambd, bias) => x < -lambd ? x + bias : x > lambd ? x - bias : 0),
} satisfies Record<string, UnaryKind> as Readonly<Record<UnaryName, UnaryKind>>;

/** Names of the kinds. */
export const UNARY_NAMES = [
  ...["abs", "neg", "sign", "relu", "bit_not", "not", "is_nan", "is_infinite"] as const,
  ...["ceil", "floor", "round", "exp", "log", "sqrt", "root", "reciprocal"] as const,
  ...["sin", "cos", "tan", "asin", "acos", "atan"] as const,
  ...["sinh", "cosh", "tanh", "asinh", "acosh", "atanh"] as const,
  ...["erf", "sigmoid", "silu", "gelu", "gelu_tanh", "softplus", "softsign", "mish"] as const,
  ...["hard_sigmoid", "hard_swish", "elu", "celu", "selu", "leaky_relu"] as const,
  ...["thresholded_relu", "shrink"] as const,
] as const;

/** One of `UNARY_NAMES`. */
export type UnaryName = typeof UNARY_NAMES[number];

/** Nearest whole number, halves to the even one; a 0 has the sign of x. */
function roundToEven(x: number): number {
  const floor = Math.floor(x), rest = x - floor;
  const isUp = rest === 0.5 ? floor % 2 !== 0 : !(rest < 0.5);
  return (isUp ? floor + 1 : floor) || 0 * x;
}

function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}
