// Weights that passes make out of others: they look like tensors of a file, and are computed when a backend
// reads them, so that a graph of any size is rewritten without reading it.

import type { ByteSource } from "../../byte_source.ts";
import type { TensorInfo } from "../../formats/source.ts";
import type { Value } from "../../graph/graph.ts";

/** Whether the elements of a value are in memory, or in a file as float32. */
export function isKnownFloat({ data, tensor, dtype }: Value): boolean {
  return dtype === "f32" && (data !== undefined || tensor?.format === "F32");
}

/**
 * The elements of such a value.
 *
 * @throws {TypeError} If its source does not answer at once.
 */
export function floatElements({ name, data, tensor }: Value): Float32Array {
  if (data) return data as Float32Array;
  const { source, offset, byteLength } = tensor!;
  const bytes = new Uint8Array(byteLength);
  if (source.readInto(offset, bytes)) {
    throw new TypeError(`Cannot read ${name} of ${source.name}: it does not answer at once`);
  }
  return new Float32Array(bytes.buffer);
}

/**
 * Whether weights may be multiplied by these factors: normal numbers stay normal numbers. By 0, infinity and NaN, and
 * close to them, a product of sums is not a sum of products: 0 · ∞, the sign of x / -0, what overflows on the way.
 */
export function areFactors(factors: Float64Array): boolean {
  return factors.every((factor) => Math.abs(factor) >= 2 ** -64 && Math.abs(factor) <= 2 ** 64);
}

/**
 * Factors that were not known before weights were loaded.
 *
 * @throws {RangeError} If no weight can be multiplied by one of them.
 */
export function finiteFactors(factors: Float64Array, name: string): Float64Array {
  if (factors.every(Number.isFinite)) return factors;
  throw new RangeError(`Cannot fold into the weights of ${name}: a factor is not finite`);
}

/** A float32 tensor that is computed when it is read. */
export function computedTensor(
  name: string,
  { shape, make }: { readonly shape: readonly number[]; readonly make: () => Float32Array },
): TensorInfo {
  const byteLength = 4 * shape.reduce((product, size) => product * size, 1);
  let bytes: Uint8Array | undefined;
  const source: ByteSource = {
    name: `computed ${name}`,
    size: byteLength,
    readInto(offset, target) {
      bytes ??= new Uint8Array(make().buffer);
      target.set(bytes.subarray(offset, offset + target.length));
      // Whoever reads the end has read the rest.
      if (offset + target.length >= byteLength) bytes = undefined;
    },
    close() {},
  };
  return { name, shape, format: "F32", source, offset: 0, byteLength };
}
