// Functions of two elements of one type by name, for `binary`. Floats are computed in float64; whole
// numbers of up to 32 bits as numbers and wider ones as bigint, both wrapping when they are stored.

/** What one kind is on each family of types; an absent function: not defined there. */
export interface BinaryKind {
  /** On floats. */
  readonly float?: (x: number, y: number) => number;
  /** On whole numbers of up to 32 bits; the result is right modulo 2^32. */
  readonly integer?: (x: number, y: number) => number;
  /** On 64-bit integers; a test gives 0n or 1n. */
  readonly bigint?: (x: bigint, y: bigint) => bigint;
  /** On truth values, 0 or 1. */
  readonly bool?: (x: number, y: number) => number;
  /** True if the result is a truth value whatever the inputs are. */
  readonly test?: boolean;
}

type Comparable = number | bigint;

function comparison(holds: (x: Comparable, y: Comparable) => boolean): BinaryKind {
  const asNumber = (x: number, y: number) => Number(holds(x, y));
  return {
    float: asNumber,
    integer: asNumber,
    bool: asNumber,
    bigint: (x, y) => BigInt(holds(x, y)),
    test: true,
  };
}

/** Names of the kinds. */
export const BINARY_NAMES = [
  ...["add", "sub", "mul", "div", "mod", "fmod", "min", "max", "prelu"] as const,
  ...["equal", "greater", "greater_equal", "less", "less_equal"] as const,
  ...["and", "or", "xor", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right"] as const,
] as const;

/** One of `BINARY_NAMES`. */
export type BinaryName = typeof BINARY_NAMES[number];

/** Every kind by name. */
export const binaryKinds: Readonly<Record<BinaryName, BinaryKind>> = {
  add: { float: (x, y) => x + y, integer: (x, y) => x + y, bigint: (x, y) => x + y },
  sub: { float: (x, y) => x - y, integer: (x, y) => x - y, bigint: (x, y) => x - y },
  mul: { float: (x, y) => x * y, integer: Math.imul, bigint: (x, y) => x * y },
  // Whole quotients are cut towards 0, as in C.
  div: {
    float: (x, y) => x / y,
    integer: (x, y) => Math.trunc(x / divisor(y)),
    bigint: (x, y) => x / divisor(y),
  },
  // The remainder that has the divisor's sign.
  mod: {
    float: floorMod,
    integer: (x, y) => floorMod(x, divisor(y)),
    bigint: (x, y) => {
      const rest = x % divisor(y);
      return rest !== 0n && (rest < 0n) !== (y < 0n) ? rest + y : rest;
    },
  },
  // The remainder that has the dividend's sign.
  fmod: {
    float: (x, y) => x % y,
    integer: (x, y) => x % divisor(y),
    bigint: (x, y) => x % divisor(y),
  },
  // Two parameters, whatever else a caller passes on: Math.min would take it into account.
  min: { float: least, integer: least, bigint: (x, y) => x < y ? x : y },
  max: { float: most, integer: most, bigint: (x, y) => x > y ? x : y },
  prelu: {
    float: (x, slope) => x < 0 ? slope * x : x,
    integer: (x, slope) => x < 0 ? Math.imul(slope, x) : x,
    bigint: (x, slope) => x < 0n ? slope * x : x,
  },
  equal: comparison((x, y) => x === y),
  greater: comparison((x, y) => x > y),
  greater_equal: comparison((x, y) => x >= y),
  less: comparison((x, y) => x < y),
  less_equal: comparison((x, y) => x <= y),
  and: { bool: (x, y) => x & y },
  or: { bool: (x, y) => x | y },
  xor: { bool: (x, y) => x ^ y },
  bit_and: { integer: (x, y) => x & y, bigint: (x, y) => x & y },
  bit_or: { integer: (x, y) => x | y, bigint: (x, y) => x | y },
  bit_xor: { integer: (x, y) => x ^ y, bigint: (x, y) => x ^ y },
  shift_left: {
    integer: (x, y) => y > 31 ? 0 : x << y,
    bigint: (x, y) => y > 63n ? 0n : x << y,
  },
  shift_right: {
    integer: (x, y) => y > 31 ? 0 : x >>> y,
    bigint: (x, y) => y > 63n ? 0n : x >> y,
  },
};

function least(x: number, y: number): number {
  return Math.min(x, y);
}

function most(x: number, y: number): number {
  return Math.max(x, y);
}

// A remainder of nothing has the divisor's sign too.
function floorMod(x: number, y: number): number {
  const rest = x % y;
  if (rest === 0) return y < 0 ? -0 : 0;
  return (rest < 0) !== (y < 0) ? rest + y : rest;
}

function divisor<T extends number | bigint>(y: T): T {
  if (y === 0 || y === 0n) throw new RangeError("Cannot divide whole numbers by 0");
  return y;
}
