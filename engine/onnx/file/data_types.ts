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
  format: string,
  bits: number,
  field: ElementType["field"] = "int32",
): ElementType {
  return { dtype, format, bits, field };
}

/** By number of TensorProto.DataType; complex numbers are left out. */
export const ELEMENT_TYPES: ReadonlyMap<number, ElementType> = new Map([
  [1, element("f32", "F32", 32, "float")],
  [2, element("u8", "U8", 8)],
  [3, element("i8", "I8", 8)],
  [4, element("u16", "U16", 16)],
  [5, element("i16", "I16", 16)],
  [6, element("i32", "I32", 32)],
  [7, element("i64", "I64", 64, "int64")],
  [8, element("string", "", 0, "string")],
  [9, element("bool", "BOOL", 8)],
  [10, element("f16", "F16", 16)],
  [11, element("f64", "F64", 64, "double")],
  [12, element("u32", "U32", 32, "uint64")],
  [13, element("u64", "U64", 64, "uint64")],
  [16, element("bf16", "BF16", 16)],
  [17, element("f8e4m3fn", "F8_E4M3", 8)],
  [18, element("f8e4m3fnuz", "F8_E4M3FNUZ", 8)],
  [19, element("f8e5m2", "F8_E5M2", 8)],
  [20, element("f8e5m2fnuz", "F8_E5M2FNUZ", 8)],
  [21, element("u4", "U4", 4)],
  [22, element("i4", "I4", 4)],
  [23, element("f4e2m1", "F4_E2M1", 4)],
  [24, element("f8e8m0", "F8_E8M0", 8)],
  [25, element("u2", "U2", 2)],
  [26, element("i2", "I2", 2)],
]);

/** By name in graphs. */
export const ELEMENT_TYPE_OF: ReadonlyMap<OnnxDataType, ElementType> = new Map(
  [...ELEMENT_TYPES.values()].map((type) => [type.dtype, type]),
);

/** The same element types by the number that `to` and `dtype` attributes use. */
export function dataTypeOf(number: number): OnnxDataType | undefined {
  return ELEMENT_TYPES.get(number)?.dtype;
}
