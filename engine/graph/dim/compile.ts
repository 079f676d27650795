// Values of dims: substitution of symbols by dims, and closures that a step evaluates without looking
// at names twice. Sums and products run in doubles while they are exact; if a partial result leaves
// 2^53 the polynomial is computed again in BigInt, so an answer is either right or a RangeError.

import { boundsOf } from "./bounds.ts";
import { add, mul } from "./arithmetic.ts";
import { calls } from "./calls.ts";
import {
  type Atom,
  atomDim,
  type CallAtom,
  type Dim,
  type DimEnv,
  formatDim,
  type SymbolAtom,
  termsOf,
} from "./polynomial.ts";

/** Replaces symbols by name; symbols not named stay. Bounds of remaining symbols stay as declared. */
export function substitute(dim: Dim, by: Readonly<Record<string, Dim>>): Dim {
  let sum: Dim = 0;
  for (const { coefficient, factors } of termsOf(dim)) {
    let term: Dim = coefficient;
    for (const factor of factors) term = mul(term, substituteAtom(factor, by));
    sum = add(sum, term);
  }
  return sum;
}

function substituteAtom(atom: Atom, by: Readonly<Record<string, Dim>>): Dim {
  if (atom.kind === "symbol") return Object.hasOwn(by, atom.name) ? by[atom.name]! : atomDim(atom);
  return calls.get(atom.kind)!(substitute(atom.left, by), substitute(atom.right, by));
}

/** A dim as a function of the symbols' values. */
export type CompiledDim = (env: DimEnv) => number;

/**
 * Makes a closure that evaluates `dim`.
 *
 * The closure throws a RangeError if a symbol is missing, is not an integer, or lies outside its
 * bounds (simplifications relied on them), if a divisor is not positive, and if the value leaves 2^53.
 */
export function compile(dim: Dim): CompiledDim {
  if (typeof dim === "number") return () => dim;
  const terms = dim.terms.map(({ coefficient, factors }) => ({
    coefficient,
    factors: factors.map(compileAtom),
  }));
  if (terms.length === 1 && terms[0]!.coefficient === 1 && terms[0]!.factors.length === 1) {
    return terms[0]!.factors[0]!;
  }
  return (env) => {
    let sum = 0;
    let exact = true;
    for (const { coefficient, factors } of terms) {
      let product = coefficient;
      for (const factor of factors) {
        product *= factor(env);
        exact &&= Number.isSafeInteger(product);
      }
      sum += product;
      exact &&= Number.isSafeInteger(sum);
    }
    return exact ? sum : exactSum(dim, terms, env);
  };
}

interface CompiledTerm {
  readonly coefficient: number;
  readonly factors: readonly CompiledDim[];
}

function exactSum(dim: Dim, terms: readonly CompiledTerm[], env: DimEnv): number {
  let sum = 0n;
  for (const { coefficient, factors } of terms) {
    sum += factors.reduce((product, factor) => product * BigInt(factor(env)), BigInt(coefficient));
  }
  const value = Number(sum);
  if (Number.isSafeInteger(value)) return value;
  throw new RangeError(`Cannot evaluate ${formatDim(dim)}: its value ${sum} is beyond 2^53`);
}

/** Value of a dim under bindings; see `compile` for the errors. */
export function evaluate(dim: Dim, env: DimEnv): number {
  return compile(dim)(env);
}

function compileAtom(atom: Atom): CompiledDim {
  return atom.kind === "symbol" ? compileSymbol(atom) : compileCall(atom);
}

function compileSymbol(symbol: SymbolAtom): CompiledDim {
  const { name } = symbol;
  const min = boundsOf(symbol.min).min, max = boundsOf(symbol.max).max;
  return (env) => {
    const value = env[name];
    if (value === undefined) throw new RangeError(`Cannot evaluate a dim: ${name} has no value`);
    if (!Number.isSafeInteger(value) || value < min || value > max) {
      throw new RangeError(
        `Cannot evaluate a dim: ${name} is ${value} and must be an integer in ${min}..${max}`,
      );
    }
    return value;
  };
}

function compileCall({ kind, text, left, right }: CallAtom): CompiledDim {
  const a = compile(left), b = compile(right);
  if (kind === "min") return (env) => Math.min(a(env), b(env));
  if (kind === "max") return (env) => Math.max(a(env), b(env));
  const finish = QUOTIENTS[kind];
  return (env) => {
    const divisor = b(env);
    if (divisor <= 0) throw new RangeError(`Cannot evaluate ${text}: its divisor is ${divisor}`);
    const dividend = a(env);
    const remainder = dividend % divisor;
    return finish(dividend, divisor, remainder < 0 ? remainder + divisor : remainder) + 0;
  };
}

// From dividend, divisor and the remainder in 0..divisor-1; every intermediate is exact.
const QUOTIENTS: Readonly<
  Record<"floordiv" | "ceildiv" | "mod", (a: number, b: number, remainder: number) => number>
> = {
  floordiv: (a, b, remainder) => quotientOf(a, b, remainder),
  ceildiv: (a, b, remainder) => quotientOf(a, b, remainder) + (remainder === 0 ? 0 : 1),
  mod: (_a, _b, remainder) => remainder,
};

// a - remainder may leave 2^53 when a is near its negative end; dividing first keeps it inside.
function quotientOf(a: number, b: number, remainder: number): number {
  return remainder === 0 ? a / b : Math.floor(a / b);
}
