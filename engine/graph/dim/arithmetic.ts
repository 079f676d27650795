// Sums, products, exact quotients and comparisons of dims, and new symbols. Every function is exact:
// what leaves 2^53 throws a RangeError, and so does a product of more terms than any real shape has
// (dim expressions come from model files).

import { boundsOf } from "./bounds.ts";
import {
  atomDim,
  type Dim,
  divideTerms,
  type Expression,
  multiplyTerms,
  safeInteger,
  sameDim,
  sumOfTerms,
  type SymbolAtom,
  type Term,
  termsOf,
} from "./polynomial.ts";

/** Bounds of a new symbol, inclusive; they may be expressions of symbols made before. */
export interface SymbolBounds {
  /** Default 0. */
  readonly min?: Dim;
  /** Default: none. */
  readonly max?: Dim;
}

const MAX_TERMS = 4096;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * A named size. Names that are not C identifiers are allowed and print in quotes.
 *
 * @throws {RangeError} If the bounds exclude each other or the name is empty or has a quote in it.
 */
export function symbol(name: string, bounds: SymbolBounds = {}): Dim {
  if (name === "" || name.includes('"')) {
    throw new RangeError(`Cannot name a dim ${JSON.stringify(name)}: empty or with a quote in it`);
  }
  const { min = 0, max = Infinity } = bounds;
  if (boundsOf(min).min > boundsOf(max).max) {
    throw new RangeError(`Cannot declare dim ${name}: its minimum is above its maximum`);
  }
  const text = IDENTIFIER.test(name) ? name : `"${name}"`;
  const atom: SymbolAtom = { kind: "symbol", text, name, min, max };
  return atomDim(atom);
}

/** a + b. */
export function add(a: Dim, b: Dim): Dim {
  if (typeof a === "number" && typeof b === "number") return safeInteger(a + b);
  return sumOfTerms([...termsOf(a), ...termsOf(b)]);
}

/** a - b. */
export function sub(a: Dim, b: Dim): Dim {
  return add(a, mul(b, -1));
}

/** a · b. */
export function mul(a: Dim, b: Dim): Dim {
  if (typeof a === "number") return typeof b === "number" ? safeInteger(a * b) : scale(b, a);
  if (typeof b === "number") return scale(a, b);
  const left = a.terms, right = b.terms;
  if (left.length * right.length > MAX_TERMS) {
    throw new RangeError(`Cannot multiply dims of ${left.length} and ${right.length} terms`);
  }
  return sumOfTerms(left.flatMap((x) => right.map((y) => multiplyTerms(x, y))));
}

/** What most products are: of a size that is known and one that is not. */
function scale(dim: Expression, factor: number): Dim {
  safeInteger(factor);
  if (factor === 0) return 0;
  if (factor === 1) return dim;
  return {
    terms: dim.terms.map(({ coefficient, factors }) => ({
      coefficient: safeInteger(coefficient * factor),
      factors,
    })),
  };
}

/** Product of all dims; 1 for none. */
export function product(dims: readonly Dim[]): Dim {
  return dims.reduce(mul, 1);
}

/**
 * a / b where b divides a as a polynomial with integer coefficients; undefined when that is not
 * established. The quotient holds wherever b is not 0.
 */
export function exactDiv(a: Dim, b: Dim): Dim | undefined {
  if (sameDim(b, 0)) return undefined;
  const divisor = termsOf(b);
  const quotient: Term[] = [];
  let rest = a;
  // Long division: each round removes the leading term, so it ends.
  while (!sameDim(rest, 0)) {
    const term = divideTerms(termsOf(rest)[0]!, divisor[0]!);
    if (!term) return undefined;
    quotient.push(term);
    const taken = divisor.map((y) => multiplyTerms(term, y));
    rest = sub(rest, sumOfTerms(taken));
  }
  return sumOfTerms(quotient);
}

/** What is proven about two dims; `unknown` is an answer, not a failure. */
export type Comparison = "<" | "<=" | "==" | ">=" | ">" | "unknown";

/** Compares by the sign of the difference over all allowed values of the symbols. */
export function compare(a: Dim, b: Dim): Comparison {
  const difference = sub(a, b);
  if (sameDim(difference, 0)) return "==";
  const { min, max } = boundsOf(difference);
  if (min > 0) return ">";
  if (max < 0) return "<";
  if (min === 0) return max === 0 ? "==" : ">=";
  return max === 0 ? "<=" : "unknown";
}
