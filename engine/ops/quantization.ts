// What quantize_linear and dequantize_linear share.

import type { DataType } from "../graph/graph.ts";
import { elementCount, type HostTensor } from "./host_tensor.ts";

/** Types of codes and, of integers, their range. */
export const CODE_RANGES: Readonly<Partial<Record<DataType, readonly [number, number]>>> = {
  u8: [0, 255],
  i8: [-128, 127],
  u16: [0, 65535],
  i16: [-32768, 32767],
  u4: [0, 15],
  i4: [-8, 7],
  u2: [0, 3],
  i2: [-2, 1],
};

/**
 * Which scale belongs to a flat index of a tensor: scales are one number, one an index of `axis`, or a
 * tensor like it with ⌈size / block⌉ entries along `axis`.
 *
 * @throws {RangeError} If the scales fit none of these.
 */
export function scaleIndex(
  shape: readonly number[],
  { scale, axis, block }: {
    readonly scale: HostTensor;
    readonly axis: number;
    readonly block: number;
  },
): (index: number) => number {
  const count = scale.data.length;
  if (count === 1) return () => 0;
  const size = shape[axis] ?? 1, inner = elementCount(shape.slice(axis + 1));
  if (block === 0) {
    if (count !== size) throw new RangeError(`${count} scales for an axis of ${size}`);
    return (index) => Math.floor(index / inner) % size;
  }
  const blocks = Math.ceil(size / block);
  if (count * size !== elementCount(shape) * blocks) {
    throw new RangeError(`scales [${scale.shape}] do not fit blocks of ${block} of [${shape}]`);
  }
  return (index) => {
    const place = Math.floor(index / inner), outer = Math.floor(place / size);
    return (outer * blocks + Math.floor((place % size) / block)) * inner + index % inner;
  };
}
