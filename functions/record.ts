// What a function of single elements is, to everybody who computes it or calls it by name. Floats are computed in
// float64; whole numbers of up to 32 bits as numbers and wider ones as bigint, both wrapping when they are stored.
// An absent form: not defined on those types, or left to the reference.

/** Families of types beside floats: whole numbers of up to 32 bits, and of 64, as pairs of words, the low one first. */
export type OtherFamily = "bool" | "signed" | "unsigned" | "wide";

/** What functions of one and of two elements share. */
interface ElementFunction {
  /** True if the result is a truth value whatever the input is. */
  readonly test?: boolean;
  /** AssemblyScript: of four float32, of one whole number, of one float64. */
  readonly simd?: string;
  readonly i64?: string;
  readonly f64?: string;
  /** WGSL: of float32, and of what is none. */
  readonly wgsl?: string;
  readonly wgslOf?: Readonly<Partial<Record<OtherFamily, string>>>;
  /** Name and versions of the ONNX operator that is this function. */
  readonly onnx?: readonly [name: string, versions: readonly number[]];
}

/** A function of one element `x`, in vectors `v`, with the parameters `alpha` and `beta` of its node. */
export interface UnaryFunction extends ElementFunction {
  readonly float?: (x: number, alpha: number, beta: number) => number;
  readonly integer?: (x: number) => number;
  readonly bigint?: (x: bigint) => bigint;
  /** On truth values, 0 or 1. */
  readonly bool?: (x: number) => number;
  /** Where the function is finite, which cases draw from; default -3..3. */
  readonly domain?: readonly [number, number];
  /** WGSL of the result for NaN, where comparisons would not hold; default: NaN. */
  readonly ofNan?: string;
  /** Attributes of the ONNX operator that become `alpha` and `beta`, with their defaults. */
  readonly parameters?: readonly (readonly [attribute: string, value: number])[];
  /** Whether gates and rounded activations (`glu`, `activation_q8`) take it. */
  readonly gates?: boolean;
  /** Words of configs of language models. */
  readonly words?: readonly string[];
  /** Whether convolutions apply it to their results. */
  readonly epilogue?: boolean;
}

/** A function of elements `x` and `y`, in vectors `v` and `w`, in WGSL and on whole numbers `a` and `b`. */
export interface BinaryFunction extends ElementFunction {
  readonly float?: (x: number, y: number) => number;
  /** The result is right modulo 2^32. */
  readonly integer?: (x: number, y: number) => number;
  /** A test gives 0n or 1n. */
  readonly bigint?: (x: bigint, y: bigint) => bigint;
  readonly bool?: (x: number, y: number) => number;
  /** Whether the inputs may be of different types; the result is of the first one's. */
  readonly mixed?: boolean;
}

/** Numbers in instructions of functions whose results are truth values start here. */
export const FIRST_TEST = 64;

/** Numbers of functions in instructions of WASM programs, from 1 on. */
export function numbered<Name extends string>(
  table: Readonly<Record<Name, ElementFunction>>,
): Readonly<Record<Name, number>> {
  const entries = Object.entries<ElementFunction>(table);
  return Object.fromEntries(
    entries.map(([name, { test }], index) => [name, index + 1 + (test ? FIRST_TEST : 0)]),
  ) as Record<Name, number>;
}
