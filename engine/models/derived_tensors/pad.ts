// A tensor with zeros behind one of its axes, as a tensor of its own. Kernels that multiply by stacks of matrices
// take rows by eights, and the ranks of adapters need not be such; rows and columns of zeros change no product.
// Nothing is copied. Works on formats whose zero is all zero bits and whose pieces are whole blocks.

import { formatBytes, getFormat } from "../../../quant/mod.ts";
import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";

/**
 * A tensor whose axis has `size` entries, the last of them zeros; the tensor itself where it has as many.
 *
 * @throws {FormatError} If its numbers are stored in blocks that the axis would cut.
 */
export function padTensor(tensor: TensorInfo, axis: number, size: number): TensorInfo {
  const { name, shape, format, source, offset } = tensor;
  const count = shape[axis]!;
  if (count === size) return tensor;
  if (getFormat(format).blockSize !== 1) {
    throw new FormatError(`cannot be padded: it is ${format} [${shape}]`, {
      file: source.name,
      place: `tensor ${name}`,
    });
  }
  const product = (dims: readonly number[]) => dims.reduce((a, b) => a * b, 1);
  const entry = formatBytes(getFormat(format), product(shape.slice(axis + 1)));
  const stored = count * entry, padded = size * entry;
  const outer = product(shape.slice(0, axis));
  return {
    ...tensor,
    name: `${name}, axis ${axis} padded to ${size}`,
    shape: shape.map((dim, i) => i === axis ? size : dim),
    source: {
      name: `${source.name}: ${name} padded`,
      size: outer * padded,
      async readInto(start, target) {
        for (let done = 0; done < target.length;) {
          const piece = Math.floor((start + done) / padded), skipped = (start + done) % padded;
          const end = skipped < stored ? stored : padded;
          const part = target.subarray(done, done + Math.min(end - skipped, target.length - done));
          if (skipped < stored) {
            const read = source.readInto(offset + piece * stored + skipped, part);
            if (read) await read;
          } else part.fill(0);
          done += part.length;
        }
      },
      close() {},
    },
    offset: 0,
    byteLength: outer * padded,
  };
}
