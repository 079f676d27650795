// Bounds and sign proofs. An interval is computed term by term; on top of that, a symbol that occurs
// linearly with a factor of known sign is replaced by its own bound, which may be another symbol: that
// proves sumN - N >= 0 from N <= sumN. All answers are sound; they are exact for expressions that are
// linear in each symbol once, and may be wider otherwise. Infinity means "no bound known", also when a
// bound would leave 2^53.

import {
  type Atom,
  atomDim,
  type CallAtom,
  type Dim,
  type Expression,
  multiplyTerms,
  sumOfTerms,
  type SymbolAtom,
  type Term,
  termsOf,
} from "./polynomial.ts";

/** Least and greatest value, inclusive. */
export interface Bounds {
  /** -Infinity where nothing is known. */
  readonly min: number;
  /** Infinity where nothing is known. */
  readonly max: number;
}

/** Calls are made of dims whose bounds were asked for when those were made. */
const known = new WeakMap<Expression, Bounds>();

/** Bounds of a dim over all allowed values of its symbols. */
export function boundsOf(dim: Dim): Bounds {
  if (typeof dim === "number") return { min: dim, max: dim };
  const found = known.get(dim);
  if (found) return found;
  const interval = intervalOf(dim);
  const bounds = {
    min: Math.max(interval.min, cornerMinimum(dim)),
    max: Math.min(interval.max, 0 - cornerMinimum(negate(dim))),
  };
  known.set(dim, bounds);
  return bounds;
}

function negate(dim: Expression): Dim {
  return sumOfTerms(
    dim.terms.map(({ coefficient, factors }) => ({ coefficient: -coefficient, factors })),
  );
}

function intervalOf(dim: Dim): Bounds {
  let min = 0, max = 0;
  for (const term of termsOf(dim)) {
    let product: Bounds = { min: term.coefficient, max: term.coefficient };
    for (const factor of term.factors) product = multiply(product, atomBounds(factor));
    min += product.min;
    max += product.max;
    if (!Number.isSafeInteger(min)) min = -Infinity;
    if (!Number.isSafeInteger(max)) max = Infinity;
  }
  return { min, max };
}

function multiply(a: Bounds, b: Bounds): Bounds {
  const corners = [a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max]
    .map((corner) => Number.isNaN(corner) ? 0 : corner); // 0 · Infinity
  return widened(Math.min(...corners), Math.max(...corners));
}

// A bound that a double cannot hold exactly is no bound.
function widened(min: number, max: number): Bounds {
  return {
    min: Number.isSafeInteger(min) ? min : -Infinity,
    max: Number.isSafeInteger(max) ? max : Infinity,
  };
}

function atomBounds(atom: Atom): Bounds {
  if (atom.kind !== "symbol") return callBounds(atom);
  return { min: boundsOf(atom.min).min, max: boundsOf(atom.max).max };
}

function callBounds({ kind, left, right }: CallAtom): Bounds {
  const a = boundsOf(left), b = boundsOf(right);
  if (kind === "min") return { min: Math.min(a.min, b.min), max: Math.min(a.max, b.max) };
  if (kind === "max") return { min: Math.max(a.min, b.min), max: Math.max(a.max, b.max) };
  if (kind === "mod") {
    return { min: 0, max: a.min >= 0 ? Math.min(a.max, b.max - 1) : b.max - 1 };
  }
  // Divisors are at least 1, and a quotient is monotone in each argument where the other is fixed.
  const round = kind === "floordiv" ? Math.floor : Math.ceil;
  const least = Math.max(1, b.min);
  const low = a.min === -Infinity ? -Infinity : round(a.min / (a.min < 0 ? least : b.max));
  const high = a.max === Infinity ? Infinity : round(a.max / (a.max < 0 ? b.max : least));
  return widened(low, high);
}

function cornerMinimum(dim: Dim): number {
  if (typeof dim === "number") return dim;
  const symbol = outermostLinearSymbol(dim);
  if (!symbol) return intervalOf(dim).min;
  const rest: Term[] = [], slope: Term[] = [];
  for (const term of dim.terms) {
    const at = term.factors.findIndex((factor) => factor.text === symbol.text);
    if (at < 0) rest.push(term);
    else slope.push({ coefficient: term.coefficient, factors: term.factors.toSpliced(at, 1) });
  }
  const sign = intervalOf(sumOfTerms(slope));
  const corner = sign.min >= 0 ? symbol.min : sign.max <= 0 ? symbol.max : undefined;
  if (corner === undefined || Math.abs(corner as number) === Infinity) return intervalOf(dim).min;
  try {
    const moved = slope.flatMap((term) => termsOf(corner).map((by) => multiplyTerms(term, by)));
    return cornerMinimum(sumOfTerms([...rest, ...moved]));
  } catch (error) {
    // A corner beyond 2^53 proves nothing; it is no failure of the expression.
    if (error instanceof RangeError) return intervalOf(dim).min;
    throw error;
  }
}

// A symbol whose bounds mention others must go first: N <= sumN is lost once sumN is a number.
function outermostLinearSymbol({ terms }: Expression): SymbolAtom | undefined {
  const symbols = new Map<string, SymbolAtom>();
  const barred = new Set<string>();
  for (const { factors } of terms) {
    for (let i = 0; i < factors.length; i++) {
      const atom = factors[i]!;
      if (atom.kind !== "symbol") {
        for (const name of symbolsOf(atomDim(atom)).keys()) barred.add(name);
      } else {
        symbols.set(atom.name, atom);
        if (factors[i - 1]?.text === atom.text) barred.add(atom.name);
        for (const bound of [atom.min, atom.max]) {
          for (const name of symbolsOf(bound).keys()) barred.add(name);
        }
      }
    }
  }
  for (const [name, symbol] of symbols) if (!barred.has(name)) return symbol;
  return undefined;
}

/** Every symbol of a dim by name, also those inside calls; not those that only bound others. */
export function symbolsOf(dim: Dim): Map<string, SymbolAtom> {
  const found = new Map<string, SymbolAtom>();
  // A bound that is not known is infinite.
  for (const { factors } of typeof dim === "number" ? [] : dim.terms) {
    for (const atom of factors) {
      if (atom.kind === "symbol") found.set(atom.name, atom);
      else {
        for (const side of [atom.left, atom.right]) {
          for (const [name, symbol] of symbolsOf(side)) found.set(name, symbol);
        }
      }
    }
  }
  return found;
}
