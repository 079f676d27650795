// Tensors of equal shape and format, one behind the other, as one tensor with a new outer axis: the
// experts of a layer, which some files store one by one and others together.

import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { derivedTensor, readPieces } from "../../formats/derived_tensor.ts";

/**
 * Stacks tensors.
 *
 * @throws {FormatError} If they differ in shape or format.
 */
export function stackTensors(tensors: readonly TensorInfo[]): TensorInfo {
  const [first, ...rest] = tensors as [TensorInfo, ...TensorInfo[]];
  const { name, shape, format, byteLength } = first;
  for (const other of rest) {
    if (other.format === format && other.shape.join() === shape.join()) continue;
    throw new FormatError(
      `is ${other.format} [${other.shape}] where ${name} is ${format} [${shape}]: they must be alike`,
      { file: other.source.name, place: `tensor ${other.name}` },
    );
  }
  return {
    ...first,
    ...derivedTensor(first, {
      ...{ name: `${name} and ${rest.length} more`, format, shape: [tensors.length, ...shape] },
      label: `${tensors.length} from ${name} on`,
      byteLength: byteLength * tensors.length,
      readInto: readPieces(byteLength, (index, skipped, target) => {
        const { source, offset } = tensors[index]!;
        return source.readInto(offset + skipped, target);
      }),
    }),
  };
}
