// Symbols of a graph's inputs (spec TL-15). What files write as dims are hints: a name is a symbol, an
// expression counts if its symbols are names of their own elsewhere, and whatever contradicts the shapes
// that really come is dropped. Dims that derivation needs equal become equations: the symbol declared
// last is expressed by the others (lastSum := sumN - N), and bounds follow from sizes not being negative.

import type { OnnxValueInfo } from "../file/model.ts";
import {
  compile,
  type CompiledDim,
  type Dim,
  type DimEnv,
  equal,
  formatDim,
  mul,
  parseDim,
  sub,
  substitute,
  symbol,
  symbolsOf,
} from "../../graph/dim/mod.ts";

/** Shapes by input name. */
export type InputShapes = ReadonlyMap<string, readonly number[]>;

/** What is assumed beside the file. */
export interface Assumptions {
  /** `input axis` whose declared dim is not believed. */
  readonly dropped: ReadonlySet<string>;
  /** Symbols in terms of others, in the order in which they were found. */
  readonly equations: readonly Equation[];
  /** By symbol, the largest value for which shapes fit. */
  readonly most: ReadonlyMap<string, number>;
  /** By symbol, what it must be a multiple of. */
  readonly multiples: ReadonlyMap<string, number>;
}

/** A symbol in terms of others. */
export interface Equation {
  readonly name: string;
  readonly dim: Dim;
}

/** No assumption. */
export const NO_ASSUMPTIONS: Assumptions = {
  dropped: new Set(),
  equations: [],
  most: new Map(),
  multiples: new Map(),
};

/** Dims of every input. */
export interface DeclaredInputs {
  readonly dims: ReadonlyMap<string, readonly Dim[]>;
  /** Symbols in the order of their declaration. */
  readonly order: readonly string[];
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Symbol of a size that is not declared. */
export function inventedName(input: string, axis: number): string {
  return `${input}_dim_${axis}`;
}

/** Key of an axis in `Assumptions.dropped`. */
export function axisKey(input: string, axis: number): string {
  return `${input} ${axis}`;
}

/**
 * Dims of the inputs.
 *
 * @param shapes Shapes of a run: ranks that are not declared, and which sizes may be 0, come from it.
 */
export function declareInputs(
  inputs: readonly OnnxValueInfo[],
  shapes: InputShapes,
  { dropped, equations, most, multiples }: Assumptions,
): DeclaredInputs {
  const written = inputs.filter(({ name }) => shapes.has(name)).map(({ name, type }) => {
    const declared = type?.kind === "tensor" ? type.shape : undefined;
    const sizes = shapes.get(name)!.map((size, axis) => {
      const hint = dropped.has(axisKey(name, axis)) ? undefined : declared?.[axis];
      // Where the file is wrong, a size of 1 is likely to be one that repeats.
      if (hint === undefined && size === 1 && dropped.has(axisKey(name, axis))) return 1;
      return hint ?? inventedName(name, axis);
    });
    return { name, sizes };
  });
  const least = new Map<string, Dim>();
  for (const { name, sizes } of written) {
    sizes.forEach((size, axis) => {
      if (typeof size !== "string" || (!IDENTIFIER.test(size) && !isOwnName(size, written))) return;
      const known = least.get(size) as number | undefined;
      least.set(size, Math.min(known ?? 1, shapes.get(name)![axis] === 0 ? 0 : 1));
    });
  }
  // Names of our own come last, so that they are what equations express.
  const own = new Set(
    written.flatMap(({ name, sizes }) => sizes.map((_, axis) => inventedName(name, axis))),
  );
  const order = [...least.keys()].sort((a, b) => Number(own.has(a)) - Number(own.has(b)));
  const read = (size: number | string, symbols: Record<string, Dim>) =>
    typeof size === "number"
      ? size
      : Object.hasOwn(symbols, size)
      ? symbols[size]!
      : parseDim(size, symbols);
  const declare = () => declareSymbols(order, { least, most, multiples });
  let symbols = declare();
  // A size that is a difference is not negative: that bounds what comes first in it.
  for (const size of new Set(written.flatMap(({ sizes }) => sizes))) {
    if (raiseBound(read(size, symbols), { floor: 0, order, least })) symbols = declare();
  }
  for (const { name, dim } of equations) {
    if (raiseBound(dim, { floor: least.get(name) ?? 0, order, least })) symbols = declare();
  }
  const solved: Record<string, Dim> = {};
  for (const { name, dim } of equations) {
    // An equation may mention symbols that later equations express, and bounds may have been raised.
    const fresh = substitute(dim, symbols);
    for (const other of Object.keys(solved)) {
      solved[other] = substitute(solved[other]!, { [name]: fresh });
    }
    solved[name] = substitute(fresh, solved);
  }
  const dims = new Map(written.map(({ name, sizes }) => [
    name,
    sizes.map((size) => substitute(read(size, symbols), solved)),
  ]));
  return { dims, order: order.map((name) => unitName(name, multiples.get(name))) };
}

// A symbol that must be a multiple of 2 is twice another one.
function unitName(name: string, factor: number | undefined): string {
  return factor === undefined ? name : `${name}/${factor}`;
}

/**
 * Axes whose declared size contradicts a run: another size than the first axis of that name, or than its
 * expression gives.
 */
export function contradictions(
  inputs: readonly OnnxValueInfo[],
  shapes: InputShapes,
): Set<string> {
  const env = new Map<string, number>();
  const found = new Set<string>();
  const axes = inputs.flatMap(({ name, type }) =>
    type?.kind === "tensor" && shapes.has(name)
      ? (type.shape ?? []).map((dim, axis) => ({
        key: axisKey(name, axis),
        dim,
        size: shapes.get(name)![axis],
      }))
      : []
  );
  for (const { key, dim, size } of axes) {
    if (typeof dim !== "string" || !IDENTIFIER.test(dim) || size === undefined) continue;
    if ((env.get(dim) ?? size) !== size) found.add(key);
    else env.set(dim, size);
  }
  for (const { key, dim, size } of axes) {
    if (typeof dim !== "string" || IDENTIFIER.test(dim)) continue;
    const parsed = parseDim(dim);
    const names = [...symbolsOf(parsed).keys()];
    if (names.length === 0 || !names.every((name) => env.has(name))) continue;
    const values = Object.fromEntries(names.map((name) => [name, env.get(name)!]));
    if (substitute(parsed, values) !== size) found.add(key);
  }
  return found;
}

// Text that is no expression of names that occur by themselves is a name as it stands.
function isOwnName(
  text: string,
  written: readonly { readonly sizes: readonly (number | string)[] }[],
): boolean {
  const names = new Set(written.flatMap(({ sizes }) => sizes));
  const dim = parseDim(text);
  return ![...symbolsOf(dim).keys()].every((name) => name !== text && names.has(name)) ||
    typeof dim === "number";
}

function declareSymbols(
  order: readonly string[],
  { least, most, multiples }: {
    readonly least: ReadonlyMap<string, Dim>;
    readonly most: ReadonlyMap<string, number>;
    readonly multiples: ReadonlyMap<string, number>;
  },
): Record<string, Dim> {
  const symbols: Record<string, Dim> = {};
  for (const name of order) {
    const min = substitute(least.get(name)!, symbols);
    const max = most.get(name) ?? Infinity, factor = multiples.get(name);
    const text = unitName(name, factor).replaceAll('"', "'");
    symbols[name] = factor === undefined ? symbol(text, { min, max }) : mul(
      symbol(text, { min: least.get(name) === 0 ? 0 : 1, max: Math.floor(max / factor) }),
      factor,
    );
  }
  return symbols;
}

// dim >= floor, where dim = last - rest: last >= rest + floor, if last was declared behind all of rest.
function raiseBound(
  dim: Dim,
  { floor, order, least }: {
    readonly floor: Dim;
    readonly order: readonly string[];
    readonly least: Map<string, Dim>;
  },
): boolean {
  if (typeof dim === "number" || dim.terms.length < 2) return false;
  if (!dim.terms.some(({ coefficient, factors }) => coefficient < 0 && factors.length > 0)) {
    return false;
  }
  const names = [...symbolsOf(dim).keys()].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const last = names.at(-1)!;
  if (coefficientOf(dim, last) !== 1 || typeof least.get(last) !== "number") return false;
  const rest = sub(substitute(dim, { [last]: 0 }), floor);
  least.set(last, mul(rest, -1));
  return true;
}

/** Coefficient of a symbol that stands alone in one term and nowhere else; undefined otherwise. */
function coefficientOf(dim: Dim, name: string): number | undefined {
  if (typeof dim === "number") return undefined;
  const terms = dim.terms.filter(({ factors }) =>
    factors.some((factor) =>
      factor.kind === "symbol"
        ? factor.name === name
        : symbolsOf(factor.left).has(name) || symbolsOf(factor.right).has(name)
    )
  );
  const [term] = terms;
  return terms.length === 1 && term!.factors.length === 1 && term!.factors[0]!.kind === "symbol"
    ? term!.coefficient
    : undefined;
}

/**
 * The equation that makes two dims equal, solved for the symbol declared last; undefined if none of their
 * symbols can be expressed by integers.
 */
function solveEqual(a: Dim, b: Dim, order: readonly string[]): Equation | undefined {
  const difference = sub(a, b);
  const names = [...symbolsOf(difference).keys()]
    .sort((x, y) => order.indexOf(y) - order.indexOf(x));
  for (const name of names) {
    const coefficient = coefficientOf(difference, name);
    if (coefficient !== 1 && coefficient !== -1) continue;
    const rest = substitute(difference, { [name]: 0 });
    return { name, dim: mul(rest, -coefficient) };
  }
  return undefined;
}

/**
 * What must hold for two dims to be equal, added to what is assumed; undefined if nothing does it.
 *
 * @param order Symbols in the order of their declaration.
 * @param related Other dims that differ at the same node: the same multiple may serve them.
 */
export function assumeEqual(
  a: Dim,
  { b, order, before, related = [] }: {
    readonly b: Dim;
    readonly order: readonly string[];
    readonly before: Assumptions;
    readonly related?: readonly (readonly [Dim, Dim])[] | undefined;
  },
): Assumptions | undefined {
  const bound = boundFor(a, b) ?? boundFor(b, a);
  if (bound) return { ...before, most: new Map([...before.most, bound]) };
  const multiples = [[a, b] as const, ...related].flatMap(([x, y]) => multipleFor(x, y) ?? []);
  if (multipleFor(a, b)) return { ...before, multiples: withMultiples(before, multiples) };
  const equation = solveEqual(...cutTo(a, b) ?? cutTo(b, a) ?? [a, b], order);
  return equation && { ...before, equations: [...before.equations, equation] };
}

// `H/2` that must be even: H is a multiple of 4.
function withMultiples(
  { multiples }: Assumptions,
  more: readonly { readonly name: string; readonly factor: number }[],
): Map<string, number> {
  const all = new Map(multiples);
  for (const { name, factor } of more) {
    const [, base = name, unit = "1"] = /^(.*)\/(\d+)$/.exec(name) ?? [];
    all.set(base, Number(unit) * factor);
  }
  return all;
}

// N = min(32, N) holds up to 32: a table of 32 rows was cut to N.
function boundFor(a: Dim, b: Dim): [string, number] | undefined {
  const name = soleSymbol(a), call = soleAtom(b);
  if (name === undefined || call?.kind !== "min") return undefined;
  for (const [one, other] of [[call.left, call.right], [call.right, call.left]] as const) {
    if (soleSymbol(one) === name && typeof other === "number") return [name, other];
  }
  return undefined;
}

// P = min(P, s): a mask of s columns was cut to P, so it has that many.
function cutTo(a: Dim, b: Dim): [Dim, Dim] | undefined {
  const call = soleAtom(b);
  if (call?.kind !== "min") return undefined;
  if (equal(call.left, a)) return [a, call.right];
  return equal(call.right, a) ? [a, call.left] : undefined;
}

function soleAtom(dim: Dim) {
  if (typeof dim === "number" || dim.terms.length !== 1) return undefined;
  const [{ coefficient, factors }] = dim.terms as [typeof dim.terms[number]];
  return coefficient === 1 && factors.length === 1 ? factors[0] : undefined;
}

function soleSymbol(dim: Dim): string | undefined {
  const atom = soleAtom(dim);
  return atom?.kind === "symbol" ? atom.name : undefined;
}

// H = 2·⌊(H + 1) / 2⌋ holds for even H: what was halved and doubled again.
function multipleFor(
  a: Dim,
  b: Dim,
): { readonly name: string; readonly factor: number } | undefined {
  for (const [name] of symbolsOf(sub(a, b))) {
    for (const factor of [2, 3, 4, 5, 6, 8, 16, 32, 64]) {
      const by = { [name]: mul(symbol(`${name}/${factor}`, { min: 1 }), factor) };
      try {
        if (equal(substitute(a, by), substitute(b, by))) return { name, factor };
      } catch (error) {
        if (!(error instanceof RangeError) && !(error instanceof TypeError)) throw error;
      }
    }
  }
  return undefined;
}

/** Finds values of symbols in the shapes of a run. */
export interface Binder {
  /** Values of all symbols, or the key of the first axis that contradicts. */
  bind(shapes: InputShapes): DimEnv | string;
}

interface Step {
  readonly symbol: string;
  readonly input: string;
  readonly axis: number;
  readonly coefficient: number;
  readonly rest: CompiledDim;
}

/** Plans how to find the values; undefined if some symbol occurs only where it cannot be solved for. */
export function createBinder(dims: ReadonlyMap<string, readonly Dim[]>): Binder | undefined {
  const places = [...dims].flatMap(([input, sizes]) =>
    sizes.map((dim, axis) => ({ input, axis, dim }))
  );
  const missing = new Set(places.flatMap(({ dim }) => [...symbolsOf(dim).keys()]));
  const steps: Step[] = [];
  const known = new Set<string>();
  // Symbols that stand alone first: an expression is the weaker hint.
  for (const alone of [true, false]) {
    for (let found = true; found && missing.size > 0;) {
      found = false;
      for (const { input, axis, dim } of places) {
        const open = [...symbolsOf(dim).keys()].filter((name) => !known.has(name));
        const coefficient = open.length === 1 ? coefficientOf(dim, open[0]!) : undefined;
        const rest = coefficient === undefined ? 0 : substitute(dim, { [open[0]!]: 0 });
        if (coefficient === undefined || (alone && !(coefficient === 1 && rest === 0))) continue;
        steps.push({ symbol: open[0]!, input, axis, coefficient, rest: loose(rest) });
        known.add(open[0]!);
        missing.delete(open[0]!);
        found = true;
      }
    }
  }
  if (missing.size > 0) return undefined;
  const checks = places.map(({ input, axis, dim }) => ({ input, axis, size: compile(dim) }));
  return {
    bind(shapes) {
      const env: Record<string, number> = {};
      for (const { symbol: name, input, axis, coefficient, rest } of steps) {
        env[name] = (shapes.get(input)![axis]! - rest(env)) / coefficient;
      }
      for (const { input, axis, size } of checks) {
        if (holds(size, env, shapes.get(input)![axis]!)) continue;
        return axisKey(input, axis);
      }
      return env;
    },
  };
}

// Values are checked together when all are there, so bounds do not matter yet.
function loose(dim: Dim): CompiledDim {
  if (typeof dim === "number") return () => dim;
  const terms = dim.terms.map(({ coefficient, factors }) => ({
    coefficient,
    names: factors.map((factor) => factor.kind === "symbol" ? factor.name : undefined),
    inner: factors.map((factor) =>
      factor.kind === "symbol"
        ? undefined
        : compile({ terms: [{ coefficient: 1, factors: [factor] }] })
    ),
  }));
  return (env) =>
    terms.reduce(
      (sum, { coefficient, names, inner }) =>
        sum + names.reduce((product, name, i) =>
          product * (name === undefined ? inner[i]!(env) : env[name]!), coefficient),
      0,
    );
}

function holds(size: CompiledDim, env: DimEnv, actual: number): boolean {
  try {
    return size(env) === actual;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** What is assumed, one phrase each, for reports: `lastSum := sumN - N`. */
export function describeAssumptions(
  { equations, most, multiples, dropped }: Assumptions,
): string[] {
  return [
    ...[...dropped].map((axis) => `declared size of ${axis} dropped`),
    ...equations.map(({ name, dim }) => `${name} := ${formatDim(dim)}`),
    ...[...most].map(([name, limit]) => `${name} <= ${limit}`),
    ...[...multiples].map(([name, factor]) => `${name} is a multiple of ${factor}`),
  ];
}
