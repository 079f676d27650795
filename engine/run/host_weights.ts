// Weights as the reference sees them, one tensor at a time: decoded to float32 by their number format, or
// the elements of the file as they are where the graph wants another type.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { FormatError } from "../errors.ts";
import type { HostData, Value } from "../graph/graph.ts";
import { elementCount, hostArray, hostElementBytes } from "../ops/host_tensor.ts";
import type { PrepareOptions } from "./backend.ts";

/**
 * Loads and decodes weights.
 *
 * @returns Values by id of the weight, `elementCount(shape)` long.
 * @throws {FormatError} If a tensor's bytes do not fit its shape.
 */
export async function loadHostWeights(
  values: readonly Value[],
  { signal, onProgress }: Pick<PrepareOptions, "signal" | "onProgress">,
): Promise<Map<number, HostData>> {
  const totalBytes = values.reduce((sum, { tensor }) => sum + tensor!.byteLength, 0);
  const loaded = new Map<number, HostData>();
  let loadedBytes = 0;
  for (const value of values) {
    signal?.throwIfAborted();
    loaded.set(value.id, await readWeight(value));
    loadedBytes += value.tensor!.byteLength;
    onProgress?.({ loadedBytes, totalBytes });
  }
  return loaded;
}

async function readWeight({ tensor, dtype }: Value): Promise<HostData> {
  const { name, shape, source, offset, byteLength } = tensor!;
  const count = elementCount(shape);
  const format = dtype === "f32" ? getFormat(tensor!.format) : undefined;
  const expected = format ? formatBytes(format, count) : count * hostElementBytes(dtype);
  if (expected !== byteLength) {
    const what = format ? `values of ${format.name}` : `elements of ${dtype}`;
    throw new FormatError(`${byteLength} bytes do not hold ${count} ${what}`, {
      file: source.name,
      place: name,
    });
  }
  const bytes = new Uint8Array(byteLength);
  await source.readInto(offset, bytes);
  if (!format) return hostArray(dtype, { count, buffer: bytes.buffer });
  const values = new Float32Array(count);
  format.decode(bytes, values);
  return values;
}
