// Whole host tensors as arrays of doubles, for references whose inner loops would drown in getElement:
// convolutions, matrix products, recurrent nets. A float32 tensor is its own array, so nothing is
// copied where it matters; what is computed is rounded once, by setElement, when it is stored.

import type { DataType } from "../graph/graph.ts";
import { getElement, type HostTensor, setElement } from "./host_tensor.ts";

/** Element types of real numbers that networks compute in. */
export const FLOATS: readonly DataType[] = ["f32", "f16", "bf16", "f64"];

/** Element types of 32 and 64 bit integers. */
export const WIDE_INTEGERS: readonly DataType[] = ["i32", "u32", "i64", "u64"];

/** Element types of 8 bit integers. */
export const BYTES: readonly DataType[] = ["i8", "u8"];

/** Numbers by flat index; not to be written to, it may be the tensor's own memory. */
export type Numbers = Float32Array | Float64Array | Int32Array | Int8Array | Uint8Array;

/** Every element as a number. 64-bit integers must be within 2^53. */
export function numbersOf(tensor: HostTensor): Numbers {
  const { data } = tensor;
  if (data instanceof Float32Array || data instanceof Float64Array) return data;
  if (tensor.dtype === "i32" || tensor.dtype === "i8" || tensor.dtype === "u8") {
    return data as Numbers;
  }
  return Float64Array.from({ length: data.length }, (_, i) => getElement(tensor, i));
}

/** Stores every number, rounded to the element type. */
export function storeNumbers(tensor: HostTensor, values: ArrayLike<number>): void {
  if (tensor.dtype === "f32" || tensor.dtype === "f64") {
    (tensor.data as Float64Array).set(values);
    return;
  }
  for (let i = 0; i < values.length; i++) setElement(tensor, { index: i, value: values[i]! });
}

/** Row-major strides of a concrete shape, in elements. */
export function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis]!;
  }
  return strides;
}

/** `axis` counted from the front; a negative one counts from the end. */
export function axisOf(axis: number, rank: number): number {
  if (axis < -rank || axis >= rank) {
    throw new RangeError(`axis ${axis} is outside a tensor of ${rank} dims`);
  }
  return axis < 0 ? axis + rank : axis;
}
