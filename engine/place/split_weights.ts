// Shares of weights for the devices of a group: rows or columns of a matrix, entries of a vector. They are views of the
// file, and read as any other tensor.

import { getFormat } from "../../quant/mod.ts";
import { UnsupportedError } from "../errors.ts";
import type { TensorInfo } from "../formats/source.ts";
import { sliceTensor } from "../formats/tensor_slice.ts";

/** Which share of how many. */
export interface Share {
  readonly index: number;
  readonly of: number;
  /** Entries lie in so many groups, of each of which it is the share; default 1. */
  readonly groups?: number;
}

/**
 * The part of `count` entries that is somebody's.
 *
 * @throws {UnsupportedError} If they do not divide.
 */
export function shareOf(
  count: number,
  { index, of, what, place }: Omit<Share, "groups"> & {
    readonly what: string;
    readonly place: string;
  },
): { readonly start: number; readonly count: number } {
  if (count % of !== 0) {
    throw new UnsupportedError(`${count} ${what} cannot be split over ${of} devices`, {
      place,
      remedy: "Take a number of devices that divides them",
    });
  }
  return { start: index * count / of, count: count / of };
}

/**
 * A share of a tensor along an axis.
 *
 * @throws {UnsupportedError} If it does not divide, or would cut blocks of its number format.
 */
export function splitTensor(
  tensor: TensorInfo,
  { axis, ...share }: Share & { readonly axis: number },
): TensorInfo {
  const { name, shape, format } = tensor, { groups = 1 } = share, stride = shape[axis]! / groups;
  const isInRow = axis === shape.length - 1 && axis > 0;
  const what = isInRow ? "columns" : shape.length === 1 ? "entries" : "rows";
  const part = shareOf(stride, { ...share, what, place: name });
  const { blockSize } = getFormat(format);
  if (isInRow && part.count % blockSize !== 0) {
    throw new UnsupportedError(
      `${stride} columns cannot be split over ${share.of} devices: blocks of ${format} have ${blockSize}`,
      { place: name, remedy: "Take fewer devices, or quantise the model in smaller blocks" },
    );
  }
  return sliceTensor(tensor, { axis, ...part, groups, stride });
}
