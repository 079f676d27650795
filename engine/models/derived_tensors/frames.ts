// Windows over the frames of a film, which some files hold a frame at a time, as one tensor.

import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { countOf, derivedTensor, readPieces } from "../../formats/derived_tensor.ts";

/**
 * Joins tensors [rows, channels, height, width], a frame each, to one [rows, channels, frames, height, width].
 *
 * @throws {FormatError} If they differ in shape or format.
 */
export function joinFrames(frames: readonly TensorInfo[]): TensorInfo {
  const [first, ...rest] = frames as [TensorInfo, ...TensorInfo[]];
  const { name, shape, format } = first, [rows, channels, ...window] = shape;
  for (const other of rest) {
    if (other.format === format && other.shape.join() === shape.join()) continue;
    throw new FormatError(
      `is ${other.format} [${other.shape}] where ${name} is ${format} [${shape}]: they must be alike`,
      { file: other.source.name, place: `tensor ${other.name}` },
    );
  }
  const piece = first.byteLength / countOf([rows!, channels!]);
  return {
    ...first,
    ...derivedTensor(first, {
      ...{ name, format, shape: [rows!, channels!, frames.length, ...window] },
      label: `${frames.length} frames of ${name}`,
      byteLength: first.byteLength * frames.length,
      readInto: readPieces(piece, (index, skipped, target) => {
        const { source, offset } = frames[index % frames.length]!;
        return source.readInto(
          offset + Math.floor(index / frames.length) * piece + skipped,
          target,
        );
      }),
    }),
  };
}
