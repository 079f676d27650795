// Dims: sizes that may depend on symbols which get their values when a step runs. Shapes are derived
// once with dims, memory is planned at the maximum of every symbol, and a step only evaluates closures.
// A result is a plain number whenever it is known, so `typeof dim === "number"` is the test for
// "static". This is the one import point; the parts are
//   polynomial.ts  canonical form and text       arithmetic.ts  symbols, + - · /, comparison
//   bounds.ts      bounds and sign proofs        calls.ts       floordiv ceildiv mod min max
//   compile.ts     substitution and closures     parse.ts       text to dims

export { add, compare, exactDiv, mul, product, sub, symbol } from "./arithmetic.ts";
export type { Comparison, SymbolBounds } from "./arithmetic.ts";
export { type Bounds, boundsOf, symbolsOf } from "./bounds.ts";
export { ceilDiv, floorDiv, max, min, mod, roundUp } from "./calls.ts";
export { compile, type CompiledDim, evaluate, substitute } from "./compile.ts";
export { type KnownSymbols, parseDim } from "./parse.ts";
export { formatDim } from "./polynomial.ts";
export type {
  Atom,
  CallAtom,
  CallName,
  Dim,
  DimEnv,
  Expression,
  SymbolAtom,
  Term,
} from "./polynomial.ts";
export { atomDim as symbolDim, sameDim as equal } from "./polynomial.ts";
