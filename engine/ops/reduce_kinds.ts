// Reductions by name, for `reduce`: where the sum (or product, or maximum) starts, how an element joins,
// and what becomes of it at the end. log_sum_exp is not here: it needs the maximum first.

/** One reduction on doubles. */
export interface Reduction {
  readonly start: number;
  join(total: number, x: number): number;
  /** Of `count` elements; default: the total. */
  end?(total: number, count: number): number;
}

/** Names of the kinds. */
export const REDUCE_NAMES = [
  ...["sum", "mean", "max", "min", "prod", "l1", "l2"] as const,
  ...["sum_square", "log_sum", "log_sum_exp"] as const,
] as const;

/** One of `REDUCE_NAMES`. */
export type ReduceName = typeof REDUCE_NAMES[number];

const plus = (total: number, x: number) => total + x;
const plusSquare = (total: number, x: number) => total + x * x;

/** Every kind but log_sum_exp. */
export const reductions: Readonly<Record<Exclude<ReduceName, "log_sum_exp">, Reduction>> = {
  sum: { start: 0, join: plus },
  mean: { start: 0, join: plus, end: (total, count) => total / count },
  max: { start: -Infinity, join: Math.max },
  min: { start: Infinity, join: Math.min },
  prod: { start: 1, join: (total, x) => total * x },
  l1: { start: 0, join: (total, x) => total + Math.abs(x) },
  l2: { start: 0, join: plusSquare, end: Math.sqrt },
  sum_square: { start: 0, join: plusSquare },
  log_sum: { start: 0, join: plus, end: Math.log },
};

/** One reduction on whole numbers; the total wraps when it is stored. */
export interface WholeReduction {
  /** Undefined: the first element. */
  readonly start?: bigint;
  join(total: bigint, x: bigint): bigint;
}

/** The kinds whose result is a whole number. */
export const wholeReductions: Readonly<Partial<Record<ReduceName, WholeReduction>>> = {
  sum: { start: 0n, join: (total, x) => total + x },
  mean: { start: 0n, join: (total, x) => total + x },
  prod: { start: 1n, join: (total, x) => BigInt.asIntN(64, total * x) },
  max: { join: (total, x) => total > x ? total : x },
  min: { join: (total, x) => total < x ? total : x },
  l1: { start: 0n, join: (total, x) => total + (x < 0n ? -x : x) },
  sum_square: { start: 0n, join: (total, x) => BigInt.asIntN(64, total + x * x) },
};
