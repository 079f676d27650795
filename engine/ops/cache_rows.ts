// Keys and values as references see them. A cache of floats is read by element; one of q8_0 keeps every head
// as blocks of quant/formats/q8_0.ts (32 channels: a float16 scale, then 32 codes), is written a head at a time and
// read as the numbers that the blocks stand for. That is the definition: kernels round alike, to the bit.

import { q8_0 } from "../../quant/formats/q8_0.ts";
import type { Dim } from "../graph/dim/mod.ts";
import type { TensorType } from "../graph/graph.ts";
import type { HostTensor } from "./host_tensor.ts";

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

/** Writes channels of whole blocks to a q8_0 cache, `index` elements behind its start. */
export function writeQ8Cache({ data }: HostTensor, index: number, channels: Float32Array): void {
  const bytes = data as Uint8Array;
  const at = q8CacheBytes(index);
  q8_0.encode!(channels, bytes.subarray(at, at + q8CacheBytes(channels.length)));
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
