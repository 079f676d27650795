// Inputs of a case as numbers; native.py has the same rules.

import type { InputRule } from "./cases.ts";

/** Elements of an input. */
export function elementsOf(
  { type, dims, fill }: InputRule,
): Float32Array | Int32Array | BigInt64Array {
  const length = dims.reduce((product, size) => product * size, 1);
  const value = (i: number): number =>
    fill === "ids"
      ? 1000 + i * 7919 % 20000
      : fill === "wave"
      ? Math.sin(i * 0.013)
      : fill === "zero"
      ? 0
      : fill === "one"
      ? 1
      : fill;
  if (type === "int64") return BigInt64Array.from({ length }, (_, i) => BigInt(value(i)));
  return type === "int32"
    ? Int32Array.from({ length }, (_, i) => value(i))
    : Float32Array.from({ length }, (_, i) => value(i));
}

/** Numbers of the first output that engines are compared by. */
export const COMPARED = 384;
