// Bytes of values: as dims, and at the maximum binding. A size need not grow with every symbol
// (sumN - N shrinks with N), so the maximum is the upper bound over all bindings within the limits; for
// sizes that only grow it is the value at the limits.

import { lowRowBytes, q8RowBytes } from "../../quant/q8_activation.ts";
import { q8CacheBytes } from "../ops/cache_rows.ts";
import { ResourceError } from "../errors.ts";
import {
  boundsOf,
  type Dim,
  type DimEnv,
  type Expression,
  formatDim,
  mul,
  product,
  substitute,
  symbol,
  type SymbolAtom,
  symbolsOf,
} from "../graph/dim/mod.ts";
import type { DataType, Value } from "../graph/graph.ts";
import { isQ8 } from "../ops/q8_rows.ts";

const ELEMENT_BYTES: Readonly<Record<Exclude<DataType, "q8" | "q8_low" | "q8_0">, number>> = {
  f32: 4,
  f16: 2,
  bf16: 2,
  f64: 8,
  i8: 1,
  u8: 1,
  i16: 2,
  u16: 2,
  i32: 4,
  u32: 4,
  i64: 8,
  u64: 8,
  bool: 1,
  f8e4m3fn: 1,
  f8e4m3fnuz: 1,
  f8e5m2: 1,
  f8e5m2fnuz: 1,
  f8e8m0: 1,
  f4e2m1: 1,
  i4: 1,
  u4: 1,
  i2: 1,
  u2: 1,
};

/** Bytes of an activation, input or state, as a dim. */
export function byteSize({ dtype, shape }: Pick<Value, "dtype" | "shape">): Dim {
  if (dtype === "q8_0") {
    return mul(product(shape.slice(0, -1)), q8CacheBytes(shape.at(-1) as number));
  }
  if (!isQ8(dtype)) return mul(product(shape), ELEMENT_BYTES[dtype]);
  // The shape rule has made sure that rows are of a known length.
  const rowBytes = dtype === "q8" ? q8RowBytes : lowRowBytes;
  return mul(product(shape.slice(0, -1)), rowBytes(shape.at(-1) as number));
}

/**
 * Largest value of a dim for symbols between their minimum and `limits`; Infinity beyond 2^53.
 *
 * @throws {RangeError} If a symbol has no limit, or one below its minimum.
 */
export function maximumOf(dim: Dim, limits: DimEnv): number {
  if (typeof dim === "number") return dim;
  return growingMaximum(dim, limits) ?? boundedMaximum(dim, limits);
}

// A sum of products of symbols only grows: its maximum is its value at the limits.
function growingMaximum({ terms }: Expression, limits: DimEnv): number | undefined {
  let sum = 0;
  for (const { coefficient, factors } of terms) {
    if (coefficient < 0) return undefined;
    let value = coefficient;
    for (const factor of factors) {
      const limit = factor.kind === "symbol" ? limits[factor.name] : undefined;
      if (limit === undefined || !Number.isSafeInteger(limit) || limit < 0) return undefined;
      // A limit below the symbol's minimum is an error, which the other way reports.
      if (typeof (factor as SymbolAtom).min !== "number") return undefined;
      if (limit < ((factor as SymbolAtom).min as number)) return undefined;
      value *= limit;
    }
    sum += value;
  }
  return Number.isSafeInteger(sum) ? sum : undefined;
}

function boundedMaximum(dim: Expression, limits: DimEnv): number {
  const limited: Record<string, Dim> = {};
  for (const [name, { min }] of symbolsOf(dim)) {
    const limit = limits[name];
    if (limit === undefined || !Number.isSafeInteger(limit)) {
      throw new RangeError(`Cannot plan: dim ${name} needs an integer limit, got ${limit}`);
    }
    limited[name] = symbol(name, { min: boundsOf(min).min, max: limit });
  }
  return boundsOf(substitute(dim, limited)).max;
}

/** Bytes of a value as a dim, and at the maximum binding. */
export interface Size {
  readonly size: Dim;
  readonly bytes: number;
}

/**
 * Size of a value.
 *
 * @throws {RangeError} As `maximumOf`. @throws {ResourceError} If it is beyond 2^53 bytes.
 */
export function sizeOf(value: Value, limits: DimEnv): Size {
  const size = exactSize(value);
  const bytes = maximumOf(size, limits);
  if (bytes === Infinity) throw beyond(value);
  return { size, bytes: Math.max(0, bytes) };
}

function exactSize(value: Value): Dim {
  try {
    return byteSize(value);
  } catch (error) {
    // A product of dims that leaves 2^53.
    throw error instanceof RangeError ? beyond(value) : error;
  }
}

function beyond({ name, dtype, shape }: Value): ResourceError {
  const type = `${dtype}[${shape.map(formatDim).join(", ")}]`;
  return new ResourceError(`Cannot plan memory: ${type} is beyond 2^53 bytes`, { place: name });
}
