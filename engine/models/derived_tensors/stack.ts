// Tensors of equal shape and format, one behind the other, as one tensor with a new outer axis: the
// experts of a layer, which some files store one by one and others together.

import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";

/**
 * Stacks tensors.
 *
 * @throws {FormatError} If they differ in shape or format.
 */
export function stackTensors(tensors: readonly TensorInfo[]): TensorInfo {
  const [first, ...rest] = tensors as [TensorInfo, ...TensorInfo[]];
  const { name, shape, format, source, byteLength } = first;
  for (const other of rest) {
    if (other.format === format && other.shape.join() === shape.join()) continue;
    throw new FormatError(
      `is ${other.format} [${other.shape}] where ${name} is ${format} [${shape}]: they must be alike`,
      { file: other.source.name, place: `tensor ${other.name}` },
    );
  }
  return {
    ...first,
    name: `${name} and ${rest.length} more`,
    shape: [tensors.length, ...shape],
    source: {
      name: `${source.name}: ${tensors.length} from ${name} on`,
      size: byteLength * tensors.length,
      async readInto(start, target) {
        for (let done = 0; done < target.length;) {
          const index = Math.floor((start + done) / byteLength);
          const skipped = (start + done) % byteLength;
          const take = Math.min(byteLength - skipped, target.length - done);
          const tensor = tensors[index]!;
          const part = target.subarray(done, done + take);
          const read = tensor.source.readInto(tensor.offset + skipped, part);
          if (read) await read;
          done += take;
        }
      },
      close() {},
    },
    offset: 0,
    byteLength: byteLength * tensors.length,
  };
}
