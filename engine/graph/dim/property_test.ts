// Random dim expressions against evaluation in BigInt. The generator prefers small numbers, so that
// simplifications apply, and mixes in large ones, so that overflow is met; it may raise an error where
// BigInt has a value beyond 2^53 on the way, but never a different number.

import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import fc from "fast-check";
import {
  add,
  boundsOf,
  ceilDiv,
  compare,
  type Dim,
  type DimEnv,
  equal,
  evaluate,
  exactDiv,
  floorDiv,
  formatDim,
  max,
  min,
  mod,
  mul,
  parseDim,
  sub,
  substitute,
  symbol,
} from "./mod.ts";

const SEED = 20240917;
const RUNS = 10_000;

const SYMBOLS: Readonly<Record<string, Dim>> = (() => {
  const total = symbol("total", { min: 1, max: 40 });
  return {
    total,
    part: symbol("part", { min: 1, max: total }),
    x: symbol("x", { min: 0, max: 12 }),
    y: symbol("y", { min: -5, max: 7 }),
    huge: symbol("huge", { min: 0, max: 2 ** 40 }),
  };
})();

type Operator = "+" | "-" | "*" | "floordiv" | "ceildiv" | "mod" | "min" | "max";
type Tree = number | string | readonly [Operator, Tree, Tree];

const DIM_OPERATORS: Readonly<Record<Operator, (a: Dim, b: Dim) => Dim>> = {
  "+": add,
  "-": sub,
  "*": mul,
  floordiv: floorDiv,
  ceildiv: ceilDiv,
  mod,
  min,
  max,
};

const BIG_OPERATORS: Readonly<Record<Operator, (a: bigint, b: bigint) => bigint>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  floordiv: bigFloorDiv,
  ceildiv: (a, b) => -bigFloorDiv(-a, b),
  mod: (a, b) => a - b * bigFloorDiv(a, b),
  min: (a, b) => a < b ? a : b,
  max: (a, b) => a > b ? a : b,
};

class NotPositive extends Error {}

function bigFloorDiv(a: bigint, b: bigint): bigint {
  if (b <= 0n) throw new NotPositive();
  const quotient = a / b;
  return quotient * b > a ? quotient - 1n : quotient;
}

const trees: fc.Arbitrary<Tree> = fc.letrec<{ tree: Tree; leaf: Tree }>((tie) => ({
  leaf: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom<Tree>("total", "part", "x", "y") },
    { weight: 1, arbitrary: fc.constant<Tree>("huge") },
    { weight: 3, arbitrary: fc.integer({ min: -9, max: 70 }) },
  ),
  tree: fc.oneof(
    { maxDepth: 5, depthSize: "medium" },
    tie("leaf"),
    fc.tuple(
      fc.constantFrom<Operator>("+", "-", "*", "floordiv", "ceildiv", "mod", "min", "max"),
      tie("tree"),
      tie("tree"),
    ),
  ),
})).tree;

const environments: fc.Arbitrary<DimEnv> = fc.record({
  total: fc.integer({ min: 1, max: 40 }),
  fraction: fc.integer({ min: 0, max: 39 }),
  x: fc.integer({ min: 0, max: 12 }),
  y: fc.integer({ min: -5, max: 7 }),
  huge: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 2 ** 38, max: 2 ** 40 })),
}).map(({ fraction, ...env }) => ({ ...env, part: 1 + fraction % env.total }));

function buildDim(tree: Tree): Dim {
  if (typeof tree === "number") return tree;
  if (typeof tree === "string") return SYMBOLS[tree]!;
  return DIM_OPERATORS[tree[0]](buildDim(tree[1]), buildDim(tree[2]));
}

function evaluateBig(tree: Tree, env: DimEnv): bigint {
  if (typeof tree === "number") return BigInt(tree);
  if (typeof tree === "string") return BigInt(env[tree]!);
  return BIG_OPERATORS[tree[0]](evaluateBig(tree[1], env), evaluateBig(tree[2], env));
}

/** True if the tree has no large symbol and few products, so that nothing can come near 2^53. */
function staysSmall(tree: Tree): boolean {
  const products = (part: Tree): number =>
    typeof part !== "object" ? 0 : Number(part[0] === "*") + products(part[1]) + products(part[2]);
  return !JSON.stringify(tree).includes("huge") && products(tree) <= 3;
}

/** The result of `compute`, or undefined for the RangeErrors that dims may throw. */
function orRefused<T>(compute: () => T): T | undefined {
  try {
    return compute();
  } catch (error) {
    if (error instanceof RangeError || error instanceof NotPositive) return undefined;
    throw error;
  }
}

Deno.test(`${RUNS} random expressions evaluate as in BigInt (seed ${SEED})`, () => {
  let compared = 0, refused = 0;
  fc.assert(
    fc.property(trees, environments, (tree, env) => {
      const expected = orRefused(() => evaluateBig(tree, env));
      const dim = orRefused(() => buildDim(tree));
      // A division by what cannot be positive is refused while building, else while evaluating.
      const value = dim === undefined ? undefined : orRefused(() => evaluate(dim, env));
      if (expected === undefined || dim === undefined || value === undefined) {
        refused++;
        assert(expected === undefined || !staysSmall(tree), `${JSON.stringify(tree)} is refused`);
        return;
      }
      compared++;
      assertEquals(BigInt(value), expected, formatDim(dim));
      const { min: least, max: most } = boundsOf(dim);
      assert(least <= value && value <= most, `${formatDim(dim)} is ${value}, not in its bounds`);
      const known = { ...SYMBOLS };
      assert(equal(parseDim(formatDim(dim), known), dim), `${formatDim(dim)} parses differently`);
      assertEquals(substitute(dim, env), value, `substitution into ${formatDim(dim)}`);
    }),
    { seed: SEED, numRuns: RUNS },
  );
  // Otherwise the test would prove nothing.
  assertGreater(compared, RUNS / 2);
  assertLess(refused, RUNS / 2);
});

Deno.test(`comparisons and quotients that are claimed hold for all bindings (seed ${SEED})`, () => {
  const holds: Readonly<Record<string, (a: number, b: number) => boolean>> = {
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    "==": (a, b) => a === b,
    ">=": (a, b) => a >= b,
    ">": (a, b) => a > b,
    unknown: () => true,
  };
  let decided = 0;
  fc.assert(
    fc.property(trees, trees, environments, (left, right, env) => {
      const pair = orRefused(() => {
        const a = buildDim(left), b = buildDim(right);
        return { a, b, x: evaluate(a, env), y: evaluate(b, env), order: compare(a, b) };
      });
      if (!pair) return;
      const { a, b, x, y, order } = pair;
      if (order !== "unknown") decided++;
      assert(holds[order]!(x, y), `${formatDim(a)} ${order} ${formatDim(b)}, but ${x} and ${y}`);
      const quotient = orRefused(() => exactDiv(a, b));
      if (quotient !== undefined && y !== 0) assert(evaluate(quotient, env) * y === x);
    }),
    { seed: SEED, numRuns: 3000 },
  );
  assertGreater(decided, 300);
});
