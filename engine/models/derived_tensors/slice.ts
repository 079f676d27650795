// A part of a tensor along one axis, as a tensor of its own: the query rows of a fused projection, every
// second row of interleaved gate and up rows. Nothing is copied; reading the part reads the pieces of the
// whole. Works on any number format as long as a piece is whole blocks, which rows of a matrix always are.

import { formatBytes, getFormat } from "../../../quant/mod.ts";
import type { ByteSource } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";

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
  const { name, shape, source } = tensor;
  const size = shape[axis];
  if (size !== groups * stride || start < 0 || count < 1 || start + count > stride) {
    throw new FormatError(
      `has shape [${shape}] where axis ${axis} must be ${groups} times ${stride}, of which ` +
        `${start} to ${start + count} are taken`,
      { file: source.name, place: `tensor ${name}` },
    );
  }
  const bytes = bytesOf(tensor);
  const entry = bytes(shape.slice(axis + 1).reduce((a, b) => a * b, 1));
  const outer = shape.slice(0, axis).reduce((a, b) => a * b, 1);
  const label = `${start}+${count} of ${stride}, axis ${axis}, of ${name}`;
  return {
    ...tensor,
    name: `${name}[${start}+${count}/${stride}]`,
    shape: shape.map((dim, i) => i === axis ? groups * count : dim),
    source: pieces(tensor, {
      label,
      from: start * entry,
      length: count * entry,
      step: stride * entry,
      count: outer * groups,
    }),
    offset: 0,
    byteLength: outer * groups * count * entry,
  };
}

function bytesOf({ name, format, source }: TensorInfo): (count: number) => number {
  return (count) => {
    try {
      return formatBytes(getFormat(format), count);
    } catch (error) {
      throw new FormatError(`cannot be cut: ${(error as Error).message}`, {
        file: source.name,
        place: `tensor ${name}`,
      });
    }
  };
}

interface Pieces {
  readonly label: string;
  /** Bytes before the piece in its group, of a piece, and from one group to the next. */
  readonly from: number;
  readonly length: number;
  readonly step: number;
  readonly count: number;
}

function pieces(
  { source, offset }: TensorInfo,
  { label, from, length, step, count }: Pieces,
): ByteSource {
  return {
    name: `${source.name}: ${label}`,
    size: length * count,
    async readInto(start, target) {
      for (let done = 0; done < target.length;) {
        const piece = Math.floor((start + done) / length), skipped = (start + done) % length;
        const take = Math.min(length - skipped, target.length - done);
        const at = offset + piece * step + from + skipped;
        const read = source.readInto(at, target.subarray(done, done + take));
        if (read) await read;
        done += take;
      }
    },
    close() {},
  };
}
