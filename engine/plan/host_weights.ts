// Weights as the reference sees them: decoded to float32 by their number format, one tensor at a time.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { FormatError } from "../errors.ts";
import type { TensorInfo } from "../formats/source.ts";
import type { Value } from "../graph/graph.ts";
import { elementCount } from "../graph/host_tensor.ts";
import type { PrepareOptions } from "./backend.ts";
import type { Plan } from "./plan.ts";

/** The weights that a plan's nodes read, each once, in order of first use. */
export function weightsOf({ graph }: Plan): Value[] {
  const inputs = graph.nodes.flatMap((node) => node.inputs);
  return [...new Set(inputs.filter((value) => value?.role === "weight"))] as Value[];
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
): Promise<Map<number, Float32Array>> {
  const values = weightsOf(plan);
  const totalBytes = values.reduce((sum, { tensor }) => sum + tensor!.byteLength, 0);
  const loaded = new Map<number, Float32Array>();
  let loadedBytes = 0;
  for (const { id, tensor } of values) {
    signal?.throwIfAborted();
    loaded.set(id, await decodeTensor(tensor!));
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
