// Weights as the reference sees them, one tensor at a time: decoded to float32 by their number format, or
// the elements of the file as they are where the graph wants another type.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { FormatError } from "../errors.ts";
import type { TensorInfo } from "../formats/source.ts";
import type { DataType, HostData, Node, Value } from "../graph/graph.ts";
import { elementCount, hostArray, hostElementBytes } from "../ops/host_tensor.ts";
import type { PrepareOptions } from "./backend.ts";
import type { Plan } from "../plan/plan.ts";

/** The weights that a plan's nodes read, each once, in order of first use. */
export function weightsOf({ graph }: Plan): Value[] {
  return weightsOfNodes(graph.nodes);
}

/** The weights that nodes read, each once, in order of first use. */
export function weightsOfNodes(nodes: readonly Node[]): Value[] {
  const found = new Set<Value>();
  for (const { inputs } of nodes) {
    for (const value of inputs) if (value?.role === "weight") found.add(value);
  }
  return [...found];
}

/**
 * Loads and decodes every weight of a plan.
 *
 * @returns Values by id of the weight, `elementCount(shape)` long.
 * @throws {FormatError} If a tensor's bytes do not fit its shape.
 */
export async function loadHostWeights(
  plan: Plan,
  { signal, onProgress }: PrepareOptions,
): Promise<Map<number, HostData>> {
  const values = weightsOf(plan);
  const totalBytes = values.reduce((sum, { tensor }) => sum + tensor!.byteLength, 0);
  const loaded = new Map<number, HostData>();
  let loadedBytes = 0;
  for (const { id, tensor, dtype } of values) {
    signal?.throwIfAborted();
    loaded.set(id, await (dtype === "f32" ? decodeTensor(tensor!) : readElements(tensor!, dtype)));
    loadedBytes += tensor!.byteLength;
    onProgress?.({ loadedBytes, totalBytes });
  }
  return loaded;
}

async function decodeTensor(tensor: TensorInfo): Promise<Float32Array> {
  const { name, shape, source, offset, byteLength } = tensor;
  const format = getFormat(tensor.format);
  const count = elementCount(shape);
  if (formatBytes(format, count) !== byteLength) {
    throw new FormatError(`${byteLength} bytes do not hold ${count} values of ${format.name}`, {
      file: source.name,
      place: name,
    });
  }
  const bytes = new Uint8Array(byteLength);
  await source.readInto(offset, bytes);
  const values = new Float32Array(count);
  format.decode(bytes, values);
  return values;
}

/**
 * Elements of a tensor as they lie in the file.
 *
 * @throws {FormatError} If its bytes do not fit its shape.
 */
async function readElements(tensor: TensorInfo, dtype: DataType): Promise<HostData> {
  const { name, shape, source, offset, byteLength } = tensor;
  const count = elementCount(shape);
  if (count * hostElementBytes(dtype) !== byteLength) {
    throw new FormatError(`${byteLength} bytes do not hold ${count} elements of ${dtype}`, {
      file: source.name,
      place: name,
    });
  }
  const bytes = new Uint8Array(byteLength);
  await source.readInto(offset, bytes);
  return hostArray(dtype, count, bytes.buffer);
}
