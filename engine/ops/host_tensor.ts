// Host tensors as references see them: numbers by flat index, whatever the storage. f16 and bf16 are
// kept as their 16-bit codes and smaller floats as codes of a byte, so writing rounds exactly as a device
// that stores them does. Strings never reach a device: ONNX host values hold them (onnx/derivation/tensor.ts).

import { bf16ToF32, f16ToF32, f32ToBf16, f32ToF16 } from "../../quant/half.ts";
import { decodeSmallFloat, encodeSmallFloat, isSmallFloat } from "../../quant/small_floats.ts";
import type { DataType, HostData } from "../graph/graph.ts";

/**
 * A concrete tensor in host memory, row-major. `data` of a `q8` value holds the float32 values that the
 * quantised bytes stand for. A weight is handed over decoded to float32.
 */
export interface HostTensor {
  /** Element type. */
  readonly dtype: DataType;
  /** Outermost dimension first. */
  readonly shape: readonly number[];
  /** The elements. */
  readonly data: HostData;
}

interface ArrayConstructor {
  new (count: number): HostData;
  new (buffer: ArrayBuffer, offset: number, count: number): HostData;
}

const STORAGE: Readonly<Record<DataType, ArrayConstructor & { BYTES_PER_ELEMENT: number }>> = {
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f64: Float64Array,
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  bool: Uint8Array,
  f8e4m3fn: Uint8Array,
  f8e4m3fnuz: Uint8Array,
  f8e5m2: Uint8Array,
  f8e5m2fnuz: Uint8Array,
  f8e8m0: Uint8Array,
  f4e2m1: Uint8Array,
  i4: Int8Array,
  u4: Uint8Array,
  i2: Int8Array,
  u2: Uint8Array,
  // The float32 values that the quantised bytes stand for.
  q8: Float32Array,
  q8_low: Float32Array,
  // Bytes of blocks: elements are not found by index (see cache_rows.ts).
  q8_0: Uint8Array,
};

/** Bytes of one element in host memory. */
export function hostElementBytes(dtype: DataType): number {
  return STORAGE[dtype].BYTES_PER_ELEMENT;
}

/** `count` elements over a part of a buffer, or over fresh zeros. */
export function hostArray(
  dtype: DataType,
  { count, buffer, offset = 0 }: {
    readonly count: number;
    readonly buffer?: ArrayBuffer | undefined;
    readonly offset?: number | undefined;
  },
): HostData {
  // A small array without a buffer of its own is made in a fifth of the time.
  return buffer ? new STORAGE[dtype](buffer, offset, count) : new STORAGE[dtype](count);
}

/** Whether an array is of the kind that an element type is held in. */
export function isStorageOf(dtype: DataType, data: unknown): boolean {
  return data?.constructor === STORAGE[dtype];
}

/** Number of elements of a concrete shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((count, size) => count * size, 1);
}

/** Bits of the integers that are smaller than their storage. */
const NARROW_BITS: Readonly<Partial<Record<DataType, number>>> = { i4: 4, u4: 4, i2: 2, u2: 2 };

/** Element at a flat index. 64-bit integers beyond 2^53 are rounded: take them from `data`. */
export function getElement({ dtype, data }: HostTensor, index: number): number {
  const value = data[index]!;
  if (dtype === "f16") return f16ToF32(value as number);
  if (dtype === "bf16") return bf16ToF32(value as number);
  if (isSmallFloat(dtype)) return decodeSmallFloat(dtype, value as number);
  return Number(value);
}

/**
 * Stores a number at a flat index, rounded to the element type. Integers wrap; a fraction is cut, and
 * what is not finite becomes 0, as typed arrays do.
 */
export function setElement(
  { dtype, data }: HostTensor,
  { index, value }: { readonly index: number; readonly value: number },
): void {
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    data[index] = Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
  } else if (dtype === "f16") data[index] = f32ToF16(value);
  else if (dtype === "bf16") data[index] = f32ToBf16(Math.fround(value));
  else if (isSmallFloat(dtype)) data[index] = encodeSmallFloat(dtype, value);
  else {
    data[index] = value;
    const bits = NARROW_BITS[dtype];
    if (bits !== undefined) data[index] = wrapBits(data[index] as number, bits, dtype[0] === "i");
  }
}

function wrapBits(value: number, bits: number, signed: boolean): number {
  const low = value & ((1 << bits) - 1);
  return signed && low >> (bits - 1) ? low - (1 << bits) : low;
}
