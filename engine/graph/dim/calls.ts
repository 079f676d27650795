// Calls on dims: floor and ceiling division, modulo, minimum, maximum. Each is simplified as far as
// polynomials and bounds allow and otherwise becomes an opaque atom. Divisors are positive: a constant
// divisor is checked here, a symbolic one when it is evaluated (compile.ts).

import { boundsOf } from "./bounds.ts";
import { add, compare, exactDiv, mul, sub } from "./arithmetic.ts";
import {
  atomDim,
  type CallName,
  type Dim,
  formatDim,
  sumOfTerms,
  type Term,
  termsOf,
} from "./polynomial.ts";

/**
 * ⌊a / b⌋.
 *
 * @throws {RangeError} If b can only be 0 or less.
 */
export function floorDiv(a: Dim, b: Dim): Dim {
  return divide("floordiv", a, b);
}

/**
 * ⌈a / b⌉.
 *
 * @throws {RangeError} If b can only be 0 or less.
 */
export function ceilDiv(a: Dim, b: Dim): Dim {
  return divide("ceildiv", a, b);
}

function divide(kind: "floordiv" | "ceildiv", a: Dim, b: Dim): Dim {
  checkDivisor(kind, b);
  const exact = exactQuotient(a, b);
  if (exact !== undefined) return exact;
  const { whole, rest } = splitByDivisor(a, b);
  const { min, max } = boundsOf(rest);
  const least = boundsOf(b).min;
  // The quotient of what is left over is a constant when it stays within one step of the divisor.
  if (kind === "floordiv" && min >= 0 && max < least) return whole;
  if (kind === "ceildiv" && min > -least && max <= 0) return whole;
  if (typeof rest === "number" && typeof b === "number") {
    const remainder = floorMod(rest, b);
    const floor = (rest - remainder) / b;
    return add(whole, kind === "floordiv" || remainder === 0 ? floor : floor + 1);
  }
  return add(whole, call(kind, rest, b));
}

/**
 * a - b·⌊a / b⌋, which lies in 0..b-1.
 *
 * @throws {RangeError} If b can only be 0 or less.
 */
export function mod(a: Dim, b: Dim): Dim {
  checkDivisor("mod", b);
  if (exactQuotient(a, b) !== undefined) return 0;
  const { rest } = splitByDivisor(a, b);
  if (typeof rest === "number" && typeof b === "number") return floorMod(rest, b);
  const { min, max } = boundsOf(rest);
  if (min >= 0 && max < boundsOf(b).min) return rest;
  return call("mod", rest, b);
}

/** The lesser of two dims. */
export function min(a: Dim, b: Dim): Dim {
  return pick("min", a, b);
}

/** The greater of two dims. */
export function max(a: Dim, b: Dim): Dim {
  return pick("max", a, b);
}

function pick(kind: "min" | "max", a: Dim, b: Dim): Dim {
  const order = compare(a, b);
  if (order === "==") return a;
  if (order !== "unknown") return order.startsWith("<") === (kind === "min") ? a : b;
  // Commutative: one order of arguments, so that equal calls are equal text.
  return formatDim(a) < formatDim(b) ? call(kind, a, b) : call(kind, b, a);
}

function call(kind: CallName, left: Dim, right: Dim): Dim {
  const text = `${kind}(${formatDim(left)}, ${formatDim(right)})`;
  return atomDim({ kind, text, left, right });
}

function checkDivisor(kind: CallName, divisor: Dim): void {
  if (boundsOf(divisor).max <= 0) {
    throw new RangeError(
      `Cannot apply ${kind} with divisor ${formatDim(divisor)}: must be positive`,
    );
  }
}

// Dividing as polynomials says nothing where the divisor is 0, and evaluation must then fail.
function exactQuotient(a: Dim, b: Dim): Dim | undefined {
  return boundsOf(b).min > 0 ? exactDiv(a, b) : undefined;
}

// a = whole·b + rest, for constant b: coefficients are cut to 0..b-1.
function splitByDivisor(a: Dim, b: Dim): { whole: Dim; rest: Dim } {
  if (typeof b !== "number") return { whole: 0, rest: a };
  const rest: Term[] = termsOf(a).map(({ coefficient, factors }) => ({
    coefficient: floorMod(coefficient, b),
    factors,
  }));
  const left = sumOfTerms(rest.filter((term) => term.coefficient !== 0));
  return { whole: exactDiv(sub(a, left), b)!, rest: left };
}

function floorMod(a: number, b: number): number {
  const remainder = a % b;
  return (remainder < 0 ? remainder + b : remainder) + 0;
}

/** The calls by the names they have in text. */
export const calls: ReadonlyMap<string, (a: Dim, b: Dim) => Dim> = new Map([
  ["floordiv", floorDiv],
  ["ceildiv", ceilDiv],
  ["mod", mod],
  ["min", min],
  ["max", max],
]);

/** Rounds a dim up to a multiple of `unit`. */
export function roundUp(a: Dim, unit: Dim): Dim {
  return mul(ceilDiv(a, unit), unit);
}
