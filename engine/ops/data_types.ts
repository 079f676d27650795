// Families of element types, for ops that take more than float32.

import type { DataType, TensorType } from "../graph/graph.ts";
import { formatType } from "../graph/verify.ts";
import { isQ8 } from "./q8_rows.ts";

/** Every element type that a tensor of an ONNX file may have, strings aside. */
export const DATA_TYPES = [
  ...["f32", "f16", "bf16", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"] as const,
  ...["bool", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1"] as const,
  ...["i4", "u4", "i2", "u2"] as const,
] as const satisfies readonly DataType[];

const FLOATS: ReadonlySet<DataType> = new Set(["f64", "f32", "f16", "bf16"]);
const SIGNED: ReadonlySet<DataType> = new Set(["i8", "i16", "i32", "i64"]);
const UNSIGNED: ReadonlySet<DataType> = new Set(["u8", "u16", "u32", "u64"]);

/** Floats that arithmetic is defined on; 8 and 4 bit floats are storage only. */
export function isFloat(dtype: DataType): boolean {
  return FLOATS.has(dtype);
}

/** Whole numbers of 8 to 64 bits. */
export function isInteger(dtype: DataType): boolean {
  return SIGNED.has(dtype) || UNSIGNED.has(dtype);
}

/** Whole numbers without a sign, of 8 to 64 bits. */
export function isUnsigned(dtype: DataType): boolean {
  return UNSIGNED.has(dtype);
}

/** Whole numbers that JavaScript keeps as bigint. */
export function isWide(dtype: DataType): boolean {
  return dtype === "i64" || dtype === "u64";
}

/** Floats and whole numbers. */
export function isNumber(dtype: DataType): boolean {
  return isFloat(dtype) || isInteger(dtype);
}

/**
 * Input `index` of a type that `accepts` lets through; by default everything but `q8` and `q8_0`, whose
 * elements cannot be moved one by one.
 *
 * @throws {TypeError} If it is absent or of another element type.
 */
export function requireTyped(
  inputs: readonly (TensorType | undefined)[],
  { index, name }: { readonly index: number; readonly name: string },
  rule: { readonly accepts: (dtype: DataType) => boolean; readonly expected: string } = MOVABLE,
): TensorType {
  const input = inputs[index];
  if (!input) throw new TypeError(`input ${index} (${name}) is missing`);
  if (!rule.accepts(input.dtype)) {
    throw new TypeError(
      `input ${index} (${name}) is ${formatType(input)}: must be ${rule.expected}`,
    );
  }
  return input;
}

const MOVABLE = {
  accepts: (dtype: DataType): boolean => !isQ8(dtype) && dtype !== "q8_0",
  expected: "of whole elements",
};

/** For `requireTyped`: floats. */
export const FLOAT_INPUT = { accepts: isFloat, expected: "of floats" } as const;

/** For `requireTyped`: floats or whole numbers. */
export const NUMBER_INPUT = { accepts: isNumber, expected: "of numbers" } as const;

/** For `requireTyped`: indices. */
export const INDEX_INPUT = {
  accepts: (dtype: DataType): boolean => dtype === "i32" || dtype === "i64",
  expected: "i32 or i64",
} as const;

/**
 * The same element type for two inputs.
 *
 * @throws {TypeError} If they differ.
 */
export function requireSameType(
  a: TensorType,
  { b, what }: { readonly b: TensorType; readonly what: string },
): void {
  if (a.dtype !== b.dtype) {
    throw new TypeError(`${what} must have one element type: they are ${a.dtype} and ${b.dtype}`);
  }
}
