// A tensor with zeros behind one of its axes, as a tensor of its own. Kernels that multiply by stacks of matrices
// take rows by eights, and the ranks of adapters need not be such; rows and columns of zeros change no product.
// Nothing is copied. Works on formats whose zero is all zero bits and whose pieces are whole blocks.

import { formatBytes, getFormat } from "../../../quant/mod.ts";
import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { countOf, derivedTensor, readPieces } from "../../formats/derived_tensor.ts";

/**
 * A tensor whose axis has `size` entries, the last of them zeros; the tensor itself where it has as many.
 *
 * @throws {FormatError} If its numbers are stored in blocks that the axis would cut.
 */
export function padTensor(
  tensor: TensorInfo,
  { axis, size }: { readonly axis: number; readonly size: number },
): TensorInfo {
  const { name, shape, format, source, offset } = tensor;
  const count = shape[axis]!;
  if (count === size) return tensor;
  if (getFormat(format).blockSize !== 1) {
    throw new FormatError(`cannot be padded: it is ${format} [${shape}]`, {
      file: source.name,
      place: `tensor ${name}`,
    });
  }
  const entry = formatBytes(getFormat(format), countOf(shape.slice(axis + 1)));
  const stored = count * entry, padded = size * entry;
  return {
    ...tensor,
    ...derivedTensor(tensor, {
      ...{ name: `${name}, axis ${axis} padded to ${size}`, label: `${name} padded`, format },
      shape: shape.with(axis, size),
      byteLength: countOf(shape.slice(0, axis)) * padded,
      readInto: readPieces(padded, (piece, skipped, target) => {
        const kept = target.subarray(0, Math.max(0, stored - skipped));
        target.fill(0, kept.length);
        if (kept.length > 0) return source.readInto(offset + piece * stored + skipped, kept);
      }),
    }),
  };
}
