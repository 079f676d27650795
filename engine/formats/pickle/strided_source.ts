// A tensor whose elements do not lie side by side in its storage (transposed, padded, every other column)
// as a source of the bytes in order. They are gathered when first asked for, kept while somebody reads on,
// and dropped with the last byte, so that a loaded model does not hold them twice. Gathering needs the span
// of the view and the result at the same time.

import type { ByteSource } from "../../byte_source.ts";
import { checkRange } from "../../io.ts";
import type { TensorView } from "./checkpoint_tensors.ts";

type Elements = Uint8Array | Uint16Array | Uint32Array | BigUint64Array;

/** Whether the elements of a view lie side by side, the last dimension innermost. */
export function isContiguous({ shape, strides, count }: TensorView): boolean {
  let step = 1;
  for (let i = shape.length - 1; i >= 0 && count > 0; i--) {
    if (shape[i] !== 1 && strides[i] !== step) return false;
    step *= shape[i];
  }
  return true;
}

/**
 * A source of `count · width` bytes in the order of the shape.
 *
 * @param storage Where the stored bytes lie: the source and the offset of the storage's first byte.
 */
export function createStridedSource(
  view: TensorView,
  { source, offset }: { source: ByteSource; offset: number },
): ByteSource {
  const { shape, strides, count } = view;
  const { width } = view.storage;
  const size = count * width;
  const name = `${source.name}, tensor ${view.name}`;
  const span = shape.reduce((sum, dim, i) => sum + (dim - 1) * strides[i], 1);
  let kept: Uint8Array | undefined;

  function gather(bytes: Uint8Array<ArrayBuffer>): Uint8Array {
    const target = new Uint8Array(size);
    copyElements(elementsOf(bytes, width), elementsOf(target, width), view);
    return target;
  }

  function answer(gathered: Uint8Array, from: number, target: Uint8Array): void {
    target.set(gathered.subarray(from, from + target.length));
    kept = from + target.length === size ? undefined : gathered;
  }

  return {
    name,
    size,
    readInto(from, target) {
      checkRange(name, { size, offset: from, length: target.length });
      if (kept !== undefined || target.length === 0) {
        return answer(kept ?? new Uint8Array(0), from, target);
      }
      const bytes = new Uint8Array(span * width);
      const reading = source.readInto(offset + view.offset * width, bytes);
      if (reading instanceof Promise) {
        return reading.then(() => answer(gather(bytes), from, target));
      }
      answer(gather(bytes), from, target);
    },
    // The file itself is closed by its owner.
    close() {
      kept = undefined;
    },
  };
}

function elementsOf(bytes: Uint8Array<ArrayBuffer>, width: number): Elements {
  if (width === 1) return bytes;
  if (width === 2) return new Uint16Array(bytes.buffer);
  return width === 4 ? new Uint32Array(bytes.buffer) : new BigUint64Array(bytes.buffer);
}

/** Counts through all dimensions but the last, whose elements are copied in one loop. */
function copyElements(from: Elements, to: Elements, { shape, strides, count }: TensorView): void {
  const outer = shape.length - 1;
  const inner = shape[outer];
  const step = strides[outer];
  const index = new Array<number>(outer).fill(0);
  let start = 0;
  for (let at = 0; at < count;) {
    for (let i = 0, place = start; i < inner; i++, place += step) to[at++] = from[place];
    for (let d = outer - 1; d >= 0; d--) {
      start += strides[d];
      if (++index[d] < shape[d]) break;
      start -= shape[d] * strides[d];
      index[d] = 0;
    }
  }
}
