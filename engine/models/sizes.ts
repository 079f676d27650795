// Sizes and factors that specs write in terms of hyperparameters: expressions such as
// "heads // kvHeads * headDim" (the arithmetic of dims), and products of powers such as { "layers": -0.5 }.

import { FormatError } from "../errors.ts";
import { type DimEnv, evaluate, parseDim, symbolsOf } from "../graph/dim/mod.ts";
import type { Factor } from "./spec_rules.ts";

/** Names in an expression. */
export function sizeNames(text: string): string[] {
  return [...symbolsOf(parseDim(text)).keys()];
}

/**
 * Value of a size.
 *
 * @throws {FormatError} If a hyperparameter in it is missing; the message names the expression.
 */
export function sizeOf(
  size: number | string,
  { params, place }: { readonly params: object; readonly place: string },
): number {
  if (typeof size === "number") return size;
  try {
    return evaluate(parseDim(size), integers(params));
  } catch (error) {
    throw new FormatError(`cannot be computed from "${size}": ${(error as Error).message}`, {
      place,
    });
  }
}

function integers(params: object): DimEnv {
  return Object.fromEntries(
    Object.entries(params).filter(([, value]) => Number.isSafeInteger(value)),
  );
}

/**
 * Value of a factor.
 *
 * @throws {FormatError} If a hyperparameter in it is missing, or it is beyond float32.
 */
export function factorOf(
  factor: Factor | undefined,
  { params, place }: { readonly params: object; readonly place: string },
): number {
  if (factor === undefined) return 1;
  const values = params as Readonly<Record<string, unknown>>;
  const powers = typeof factor === "number" ? {} : factor;
  const product = Object.entries(powers).reduce((soFar, [name, exponent]) => {
    const value = values[name];
    if (typeof value !== "number") {
      throw new FormatError(`is missing, and ${place} depends on it`, { place: name });
    }
    return soFar * value ** exponent;
  }, typeof factor === "number" ? factor : 1);
  if (Number.isFinite(Math.fround(product))) return product;
  throw new FormatError(`is ${product}, which is no factor`, { place });
}
