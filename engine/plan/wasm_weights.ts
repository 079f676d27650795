// Weights into WASM memory, tensor by tensor: matrices are packed for their kernels, anything else
// becomes plain float32. A tensor that several values share (an embedding that is also the head) is
// loaded once.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import type { Machine } from "../../wasm/machine.ts";
import { type Packed, packWeight } from "../../wasm/pack.ts";
import { FormatError } from "../errors.ts";
import type { TensorInfo } from "../formats/source.ts";
import type { Value } from "../graph/graph.ts";
import { elementCount } from "../graph/host_tensor.ts";
import type { PrepareOptions } from "./backend.ts";
import { weightsOf } from "./host_weights.ts";
import type { Plan } from "./plan.ts";
import { distinctWeights, isMatrix, matrixSize, weightBytes, weightKey } from "./wasm_estimate.ts";

/** Weights by value id. */
export interface WasmWeights {
  readonly matrices: ReadonlyMap<number, Packed>;
  /** Addresses of float32 values. */
  readonly vectors: ReadonlyMap<number, number>;
  /** Bytes of WASM memory they take. */
  readonly bytes: number;
}

/**
 * Loads the weights of a plan.
 *
 * @throws {FormatError} If a tensor's bytes do not fit its shape, or hold numbers that are not finite.
 */
export async function loadWasmWeights(
  machine: Machine,
  plan: Plan,
  { signal, onProgress }: PrepareOptions,
): Promise<WasmWeights> {
  const values = weightsOf(plan);
  const firsts = distinctWeights(plan);
  const totalBytes = [...firsts.values()].reduce((sum, { tensor }) => sum + tensor!.byteLength, 0);
  const matrices = new Map<number, Packed>();
  const vectors = new Map<number, number>();
  let loadedBytes = 0;
  let bytes = 0;
  const report = (read: number) => {
    loadedBytes += read;
    onProgress?.({ loadedBytes, totalBytes });
  };
  for (const value of firsts.values()) {
    signal?.throwIfAborted();
    checkLength(value);
    bytes += weightBytes(value);
    if (isMatrix(value)) matrices.set(value.id, await loadMatrix(machine, value, report));
    else vectors.set(value.id, await loadVector(machine, value.tensor!, report));
  }
  for (const value of values) {
    const first = firsts.get(weightKey(value))!;
    const matrix = matrices.get(first.id);
    if (matrix) matrices.set(value.id, matrix);
    else vectors.set(value.id, vectors.get(first.id)!);
  }
  return { matrices, vectors, bytes };
}

function checkLength({ tensor, shape }: Value): void {
  const { name, format, byteLength, source } = tensor!;
  const count = elementCount(shape as readonly number[]);
  if (formatBytes(getFormat(format), count) === byteLength) return;
  throw new FormatError(`${byteLength} bytes do not hold ${count} values of ${format}`, {
    file: source.name,
    place: name,
  });
}

async function loadMatrix(
  machine: Machine,
  value: Value,
  report: (bytes: number) => void,
): Promise<Packed> {
  const { name, format, source, offset } = value.tensor!;
  const [rows, columns] = matrixSize(value);
  const readInto = (at: number, target: Uint8Array) => source.readInto(offset + at, target);
  try {
    return await packWeight(machine, { name, format, rows, columns, readInto }, report);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new FormatError(error.message, { file: source.name, place: name, cause: error });
  }
}

async function loadVector(
  machine: Machine,
  { format, shape, source, offset, byteLength }: TensorInfo,
  report: (bytes: number) => void,
): Promise<number> {
  const bytes = new Uint8Array(byteLength);
  await source.readInto(offset, bytes);
  const values = new Float32Array(elementCount(shape));
  getFormat(format).decode(bytes, values);
  const address = machine.allocate(values.byteLength);
  machine.f32(address, values.length).set(values);
  report(byteLength);
  return address;
}
