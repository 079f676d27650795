// The canonical form of symbolic dims: polynomials with integer coefficients over atoms. An atom is a
// symbol or a call (floordiv, ceildiv, mod, min, max) that the polynomial cannot look into. Two dims are
// equal as polynomials exactly when their terms are equal, so equality is a comparison and subtraction
// that ends in an integer is a proof. Coefficients stay within 2^53; beyond that is an error, never a
// rounded number. Rules about single calls are in calls.ts, bounds in bounds.ts.

/** A non-negative size or an integer expression: a plain number whenever its value is known. */
export type Dim = number | Expression;

/** Values of symbols by name. */
export type DimEnv = Readonly<Record<string, number>>;

/** A polynomial that is not a constant: at least one term has a factor. */
export interface Expression {
  /** In monomial order (see `compareTerms`), no two with the same factors, no coefficient 0. */
  readonly terms: readonly Term[];
}

/** `coefficient` times the product of `factors`; no factors for the constant term. */
export interface Term {
  /** An integer, not 0. */
  readonly coefficient: number;
  /** Sorted by text; a power is a repetition. */
  readonly factors: readonly Atom[];
}

/** What a polynomial multiplies. `text` is its canonical text and its identity. */
export type Atom = SymbolAtom | CallAtom;

/** A named integer, fixed when a step runs. Its bounds may be other symbols' expressions. */
export interface SymbolAtom {
  /** Tells it from a call. */
  readonly kind: "symbol";
  /** The name, in quotes if it is no identifier. */
  readonly text: string;
  /** As bindings name it. */
  readonly name: string;
  /** Least value. */
  readonly min: Dim;
  /** `Infinity` when there is none. */
  readonly max: Dim;
}

/** Names of the calls. `mod` has the sign of the divisor; divisors are positive. */
export type CallName = "floordiv" | "ceildiv" | "mod" | "min" | "max";

/** An application that could not be simplified. */
export interface CallAtom {
  /** What is applied. */
  readonly kind: CallName;
  /** As it parses. */
  readonly text: string;
  /** Dividend or first argument. */
  readonly left: Dim;
  /** Divisor or second argument. */
  readonly right: Dim;
}

/**
 * The same number, checked.
 *
 * @throws {RangeError} If it is not an integer within ±(2^53 - 1).
 */
export function safeInteger(value: number): number {
  if (!Number.isSafeInteger(value)) {
    throw new RangeError(`Cannot compute a dim exactly: ${value} is not an integer within 2^53`);
  }
  // -0 would make equal dims compare as different.
  return value + 0;
}

/** Terms of any dim; none for 0. */
export function termsOf(dim: Dim): readonly Term[] {
  if (typeof dim !== "number") return dim.terms;
  return dim === 0 ? [] : [{ coefficient: safeInteger(dim), factors: [] }];
}

/** Monomial order: higher degree first, then by factors; it is compatible with multiplication. */
function compareTerms(a: Term, b: Term): number {
  if (a.factors.length !== b.factors.length) return b.factors.length - a.factors.length;
  for (let i = 0; i < a.factors.length; i++) {
    const left = a.factors[i]!.text, right = b.factors[i]!.text;
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

/**
 * Sums terms into a dim.
 *
 * @throws {TypeError} If one symbol comes with two different bounds.
 */
export function sumOfTerms(terms: Iterable<Term>): Dim {
  const sorted = [...terms].sort(compareTerms);
  const merged: Term[] = [];
  for (const term of sorted) {
    const last = merged.at(-1);
    if (last && compareTerms(last, term) === 0) {
      checkSameSymbols(last.factors, term.factors);
      const coefficient = safeInteger(last.coefficient + term.coefficient);
      merged[merged.length - 1] = { coefficient, factors: last.factors };
      continue;
    }
    merged.push(term);
  }
  const kept = merged.filter((term) => term.coefficient !== 0);
  if (kept.length === 0) return 0;
  if (kept.length === 1 && kept[0]!.factors.length === 0) return kept[0]!.coefficient;
  return { terms: kept };
}

// Bounds take part in proofs, so a second symbol of the same name with other bounds would make a proof
// depend on the order of the operands.
function checkSameSymbols(left: readonly Atom[], right: readonly Atom[]): void {
  for (let i = 0; i < left.length; i++) {
    const a = left[i]!, b = right[i]!;
    if (a === b || a.kind !== "symbol" || b.kind !== "symbol") continue;
    if (!sameDim(a.min, b.min) || !sameDim(a.max, b.max)) {
      throw new TypeError(`Cannot combine two symbols named ${a.name} that have different bounds`);
    }
  }
}

/** True if both are the same polynomial. */
export function sameDim(a: Dim, b: Dim): boolean {
  if (a === b) return true;
  if (typeof a === "number" || typeof b === "number") return false;
  return a.terms.length === b.terms.length &&
    a.terms.every((term, i) =>
      term.coefficient === b.terms[i]!.coefficient && compareTerms(term, b.terms[i]!) === 0
    );
}

/** The dim that is one atom. */
export function atomDim(atom: Atom): Expression {
  return { terms: [{ coefficient: 1, factors: [atom] }] };
}

/** Product of two terms. */
export function multiplyTerms(a: Term, b: Term): Term {
  return {
    coefficient: safeInteger(a.coefficient * b.coefficient),
    factors: [...a.factors, ...b.factors].sort((x, y) =>
      x.text === y.text ? 0 : x.text < y.text ? -1 : 1
    ),
  };
}

/** Quotient of two terms, undefined if there is none with an integer coefficient. */
export function divideTerms(a: Term, b: Term): Term | undefined {
  if (a.coefficient % b.coefficient !== 0) return undefined;
  const factors = [...a.factors];
  for (const factor of b.factors) {
    const at = factors.findIndex((candidate) => candidate.text === factor.text);
    if (at < 0) return undefined;
    factors.splice(at, 1);
  }
  return { coefficient: safeInteger(a.coefficient / b.coefficient), factors };
}

/** Canonical text of a dim; `parseDim` reads it back. */
export function formatDim(dim: Dim): string {
  if (typeof dim === "number") return String(dim);
  // Positive terms first, so that a difference reads as one.
  const positive = dim.terms.filter((term) => term.coefficient > 0);
  const negative = dim.terms.filter((term) => term.coefficient < 0);
  let text = positive.map(termText).join(" + ");
  for (const term of negative) {
    const magnitude = termText({ coefficient: -term.coefficient, factors: term.factors });
    text += text === "" ? `-${magnitude}` : ` - ${magnitude}`;
  }
  return text;
}

function termText({ coefficient, factors }: Term): string {
  const names = factors.map((factor) => factor.text).join("*");
  if (names === "") return String(coefficient);
  return coefficient === 1 ? names : `${coefficient}*${names}`;
}
