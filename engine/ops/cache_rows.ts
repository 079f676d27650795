// Keys and values as references see them. A cache of floats is read by element; one of q8_0 keeps every head
// as blocks of quant/formats/q8_0.ts (32 channels: a float16 scale, then 32 codes), is written a head at a time and
// read as the numbers that the blocks stand for. That is the definition: kernels round alike, to the bit.

import { q8_0 } from "../../quant/formats/q8_0.ts";
import { DeviceError } from "../errors.ts";
import type { Dim } from "../graph/dim/mod.ts";
import type { TensorType } from "../graph/graph.ts";
import { getElement, type HostTensor, setElement } from "./host_tensor.ts";

/** Element types that a cache may have. */
export const CACHE_TYPES = ["f32", "f16", "q8_0"] as const;

/**
 * Bytes of `channels` numbers in a q8_0 cache.
 *
 * @throws {RangeError} If they do not fill whole blocks.
 */
export function q8CacheBytes(channels: number): number {
  checkChannels(channels);
  return channels / q8_0.blockSize * q8_0.blockBytes;
}

/**
 * Heads of a q8_0 cache are whole blocks.
 *
 * @throws {RangeError} If they are not.
 */
export function checkCache({ dtype, shape }: TensorType): void {
  if (dtype === "q8_0") checkChannels(shape.at(-1)!);
}

function checkChannels(channels: Dim): void {
  if (typeof channels === "number" && channels % q8_0.blockSize === 0) return;
  throw new RangeError(
    `a cache of q8_0 takes heads of a multiple of ${q8_0.blockSize} channels: these have ${channels}`,
  );
}

/** A row of heads on its way into a cache. */
export interface CacheRow {
  readonly position: number;
  /** Rows of the cache. */
  readonly capacity: number;
  /** [rows, heads, width], and which of them. */
  readonly rows: HostTensor;
  readonly row: number;
}

/**
 * Writes one row of heads; floats are rounded to the cache's type here.
 *
 * @throws {RangeError} If the cache does not reach so far. @throws {DeviceError} On a number beyond float16.
 */
export function writeCacheRow(
  cache: HostTensor,
  { position, capacity, rows, row }: CacheRow,
): void {
  if (position < 0 || position >= capacity) {
    throw new RangeError(`Cannot append at position ${position}: the cache holds ${capacity}`);
  }
  const [, heads, width] = rows.shape as [number, number, number];
  const count = heads * width, at = position * count;
  const values = Float32Array.from({ length: count }, (_, i) => getElement(rows, row * count + i));
  if (cache.dtype === "q8_0") {
    values.forEach(checkQ8);
    const bytes = cache.data as Uint8Array, start = q8CacheBytes(at);
    q8_0.encode!(values, bytes.subarray(start, start + q8CacheBytes(count)));
    return;
  }
  if (cache.dtype === "f16") values.forEach(checkHalf);
  values.forEach((value, i) => setElement(cache, { index: at + i, value }));
}

// 65520 is the least number that rounds to infinity.
function checkHalf(value: number): void {
  if (Math.abs(value) < 65520) return;
  throw new DeviceError(`Cannot store ${value} as float16: it is beyond 65504 or not a number`, {
    remedy: "Use a float32 cache",
  });
}

// 127 times that.
function checkQ8(value: number): void {
  if (Math.abs(value) < 127 * 65520) return;
  throw new DeviceError(
    `Cannot store ${value} as Q8_0: its scale is beyond 65504 or not a number`,
    { remedy: "Use a float32 cache" },
  );
}

/** The cache itself, or the numbers of the first `rows` rows of one of q8_0. */
export function readableCache(cache: HostTensor, rows: number): HostTensor {
  if (cache.dtype !== "q8_0") return cache;
  const [, ...widths] = cache.shape;
  const shape = [rows, ...widths];
  const values = new Float32Array(shape.reduce((count, size) => count * size, 1));
  q8_0.decode((cache.data as Uint8Array).subarray(0, q8CacheBytes(values.length)), values);
  return { dtype: "f32", shape, data: values };
}
