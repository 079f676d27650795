// Element types by their numbers in files: the name in graphs, the name of the bytes for TensorInfo, bits
// an element, and which repeated field holds them when they are not raw.

import type { OnnxDataType } from "./model.ts";

/** One element type. */
export interface ElementType {
  readonly dtype: OnnxDataType;
  /** Number format of the bytes (quant/ or formats/scalars.ts). */
  readonly format: string;
  /** Bits of an element in raw data. */
  readonly bits: number;
  /** Field of TensorProto for elements that are not raw. */
  readonly field: "float" | "int32" | "int64" | "double" | "uint64" | "string";
}

function element(
  dtype: OnnxDataType,
  { format, bits, field = "int32" }: {
    readonly format: string;
    readonly bits: number;
    readonly field?: ElementType["field"] | undefined;
  },
): ElementType {
  return { dtype, format, bits, field };
}

/** By number of TensorProto.DataType; complex numbers are left out. */
export const ELEMENT_TYPES: ReadonlyMap<number, ElementType> = new Map([
  [1, element("f32", { format: "F32", bits: 32, field: "float" })],
  [2, element("u8", { format: "U8", bits: 8 })],
  [3, element("i8", { format: "I8", bits: 8 })],
  [4, element("u16", { format: "U16", bits: 16 })],
  [5, element("i16", { format: "I16", bits: 16 })],
  [6, element("i32", { format: "I32", bits: 32 })],
  [7, element("i64", { format: "I64", bits: 64, field: "int64" })],
  [8, element("string", { format: "", bits: 0, field: "string" })],
  [9, element("bool", { format: "BOOL", bits: 8 })],
  [10, element("f16", { format: "F16", bits: 16 })],
  [11, element("f64", { format: "F64", bits: 64, field: "double" })],
  [12, element("u32", { format: "U32", bits: 32, field: "uint64" })],
  [13, element("u64", { format: "U64", bits: 64, field: "uint64" })],
  [16, element("bf16", { format: "BF16", bits: 16 })],
  [17, element("f8e4m3fn", { format: "F8_E4M3", bits: 8 })],
  [18, element("f8e4m3fnuz", { format: "F8_E4M3FNUZ", bits: 8 })],
  [19, element("f8e5m2", { format: "F8_E5M2", bits: 8 })],
  [20, element("f8e5m2fnuz", { format: "F8_E5M2FNUZ", bits: 8 })],
  [21, element("u4", { format: "U4", bits: 4 })],
  [22, element("i4", { format: "I4", bits: 4 })],
  [23, element("f4e2m1", { format: "F4_E2M1", bits: 4 })],
  [24, element("f8e8m0", { format: "F8_E8M0", bits: 8 })],
  [25, element("u2", { format: "U2", bits: 2 })],
  [26, element("i2", { format: "I2", bits: 2 })],
]);

/** By name in graphs. */
export const ELEMENT_TYPE_OF: ReadonlyMap<OnnxDataType, ElementType> = new Map(
  [...ELEMENT_TYPES.values()].map((type) => [type.dtype, type]),
);

/** The same element types by the number that `to` and `dtype` attributes use. */
export function dataTypeOf(number: number): OnnxDataType | undefined {
  return ELEMENT_TYPES.get(number)?.dtype;
}
