// A part of a tensor along one axis, as a tensor of its own: the query rows of a fused projection, every
// second row of interleaved gate and up rows. Nothing is copied; reading the part reads the pieces of the
// whole. Works on any number format as long as a piece is whole blocks, which rows of a matrix always are, and columns
// where they are cut between blocks.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { FormatError } from "../errors.ts";
import type { TensorInfo } from "./source.ts";
import { countOf, derivedTensor, readPieces } from "./derived_tensor.ts";

/** `count` entries from `start` on of every group of `stride` entries. */
export interface Part {
  /** Axis of the tensor, outermost is 0. */
  readonly axis: number;
  readonly start: number;
  readonly count: number;
  readonly groups: number;
  /** Entries of a whole group; `groups` of them must fill the axis. */
  readonly stride: number;
}

/**
 * A part of a tensor.
 *
 * @throws {FormatError} If the groups do not fill the axis, or a piece is not whole blocks of the format.
 */
export function sliceTensor(tensor: TensorInfo, part: Part): TensorInfo {
  const { axis, start, count, groups, stride } = part;
  const { name, shape, source, offset } = tensor;
  const size = shape[axis];
  if (size !== groups * stride || start < 0 || count < 1 || start + count > stride) {
    throw new FormatError(
      `has shape [${shape}] where axis ${axis} must be ${groups} times ${stride}, of which ` +
        `${start} to ${start + count} are taken`,
      { file: source.name, place: `tensor ${name}` },
    );
  }
  // Along rows of blocks an entry is a block.
  const unit = axis === shape.length - 1 ? blockSize(tensor, [start, count, stride]) : 1;
  const entry = entryBytes(tensor, unit * countOf(shape.slice(axis + 1))) / unit;
  const length = count * entry;
  return {
    ...tensor,
    ...derivedTensor(tensor, {
      name: `${name}[${start}+${count}/${stride}]`,
      label: `${start}+${count} of ${stride}, axis ${axis}, of ${name}`,
      format: tensor.format,
      shape: shape.with(axis, groups * count),
      byteLength: countOf(shape.slice(0, axis)) * groups * length,
      readInto: readPieces(
        length,
        (piece, skipped, target) =>
          source.readInto(offset + piece * stride * entry + start * entry + skipped, target),
      ),
    }),
  };
}

/** Numbers of a block, if all of these are whole blocks; a piece that is not is refused with its own length. */
function blockSize({ format }: TensorInfo, counts: readonly number[]): number {
  const { blockSize } = getFormat(format);
  return counts.every((count) => count % blockSize === 0) ? blockSize : 1;
}

function entryBytes({ name, format, source }: TensorInfo, count: number): number {
  try {
    return formatBytes(getFormat(format), count);
  } catch (error) {
    throw new FormatError(`cannot be cut: ${(error as Error).message}`, {
      file: source.name,
      place: `tensor ${name}`,
    });
  }
}
