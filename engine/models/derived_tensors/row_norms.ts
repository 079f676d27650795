// 1 / length of every row of a matrix, as a float32 vector that is computed while it is read. A head whose
// rows are to have length 1 multiplies its logits by this vector and keeps its stored numbers.

import { formatBytes, getFormat } from "../../../quant/mod.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { derivedTensor, readUnits } from "../../formats/derived_tensor.ts";

const LEAST_LENGTH = 1e-12;

/** The inverse Euclidean lengths of a matrix's rows: F32 [rows]. */
export function inverseRowLengths(tensor: TensorInfo): TensorInfo {
  const { name, shape, source, offset } = tensor;
  const [rows, columns] = shape as [number, number];
  const format = getFormat(tensor.format);
  const rowBytes = formatBytes(format, columns);
  async function lengthsOf(first: number, end: number): Promise<ArrayBuffer> {
    const lengths = new Float32Array(end - first);
    const bytes = new Uint8Array(rowBytes), values = new Float32Array(columns);
    for (let row = first; row < end; row++) {
      const read = source.readInto(offset + row * rowBytes, bytes);
      if (read) await read;
      format.decode(bytes, values);
      const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
      lengths[row - first] = 1 / Math.max(length, LEAST_LENGTH);
    }
    return lengths.buffer;
  }
  return derivedTensor(tensor, {
    ...{ name: `1 / |rows of ${name}|`, label: `lengths of ${name}`, format: "F32" },
    ...{ shape: [rows], byteLength: 4 * rows, readInto: readUnits({ length: 4 }, lengthsOf) },
  });
}
