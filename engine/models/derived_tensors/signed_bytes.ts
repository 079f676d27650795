// A matrix of floats as signed bytes with a scale for each 32 columns (Q8_0), encoded while it is read: for a product that
// waits for its memory, beside the floats that others read.

import { formatBytes, getFormat } from "../../../quant/mod.ts";
import { derivedTensor, readUnits } from "../../formats/derived_tensor.ts";
import type { TensorInfo } from "../../formats/source.ts";

const BYTES = getFormat("Q8_0");
/** Rows that are read at once. */
const PANEL = 256;

/** The matrix as Q8_0, or undefined if its rows are no whole blocks of floats. */
export function signedBytes(tensor: TensorInfo): TensorInfo | undefined {
  const { name, shape, source, offset } = tensor, [rows, columns] = shape as [number, number];
  const format = getFormat(tensor.format), rowBytes = formatBytes(format, columns);
  if (shape.length !== 2 || columns % BYTES.blockSize !== 0 || format.blockSize !== 1) {
    return undefined;
  }
  const length = formatBytes(BYTES, columns);
  async function encoded(first: number, end: number): Promise<ArrayBuffer> {
    const bytes = new Uint8Array((end - first) * rowBytes);
    const values = new Float32Array((end - first) * columns);
    const codes = new Uint8Array((end - first) * length);
    await source.readInto(offset + first * rowBytes, bytes);
    format.decode(bytes, values);
    BYTES.encode!(values, codes);
    return codes.buffer;
  }
  return derivedTensor(tensor, {
    ...{ name: `${name}.bytes`, label: `${name} as signed bytes`, format: "Q8_0", shape },
    ...{ byteLength: rows * length, readInto: readUnits({ length, most: PANEL }, encoded) },
  });
}
