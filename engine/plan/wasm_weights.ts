// Weights into WASM memory, tensor by tensor: matrices are packed for their kernels, some of them rounded on
// the way (rounded_weights.ts); anything else becomes plain float32, or stays as it lies in the file where
// the graph wants another type. A tensor that several values share (an embedding that is also the head) is
// loaded once; one that is read as a matrix by a kernel and element by element by another node is there in
// both forms.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import type { Machine } from "../../wasm/machine.ts";
import { OutOfMemoryError } from "../../wasm/allocator.ts";
import { createPacker, type Packed, type Packer, WeightError } from "../../wasm/pack.ts";
import { FormatError } from "../errors.ts";
import type { Value } from "../graph/graph.ts";
import { elementCount, hostElementBytes } from "../graph/host_tensor.ts";
import type { PrepareOptions } from "./backend.ts";
import { weightsOf } from "./host_weights.ts";
import type { Plan } from "./plan.ts";
import { roundedWeights } from "./rounded_weights.ts";
import {
  distinctWeights,
  isMatrix,
  matrixSize,
  plainBytes,
  weightBytes,
  weightKey,
} from "./wasm_estimate.ts";

/** Weights by value id. */
export interface WasmWeights {
  readonly matrices: ReadonlyMap<number, Packed>;
  /** Addresses of plain elements. */
  readonly vectors: ReadonlyMap<number, number>;
  /** Bytes of WASM memory they take. */
  readonly bytes: number;
}

/** How a weight is read. */
export interface WeightUse {
  readonly packed: boolean;
  readonly plain: boolean;
}

/**
 * Loads the weights of a plan.
 *
 * @param useOf How the nodes read a weight.
 * @throws {FormatError} If a tensor's bytes do not fit its shape, or hold numbers that are not finite.
 */
export async function loadWasmWeights(
  machine: Machine,
  plan: Plan,
  { signal, onProgress }: PrepareOptions,
  useOf: (value: Value) => WeightUse = (value) => ({
    packed: isMatrix(value),
    plain: !isMatrix(value),
  }),
): Promise<WasmWeights> {
  const values = weightsOf(plan);
  const rounded = roundedWeights(plan.graph.nodes);
  const keyOf = (value: Value) => weightKey(value, rounded.has(value.id));
  const uses = new Map<string, WeightUse>();
  for (const value of values) {
    const { packed, plain } = useOf(value);
    const known = uses.get(keyOf(value));
    uses.set(keyOf(value), {
      packed: packed || known?.packed === true,
      plain: plain || known?.plain === true,
    });
  }
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
  using packer = createPacker(machine);
  let current: Value | undefined;
  try {
    for (const [key, value] of firsts) {
      signal?.throwIfAborted();
      checkLength(value);
      current = value;
      const { packed, plain } = uses.get(key)!;
      if (packed) {
        const isRounded = rounded.has(value.id);
        bytes += weightBytes(value, isRounded);
        matrices.set(value.id, await loadMatrix(packer, value, report, isRounded));
      }
      if (plain) {
        bytes += plainBytes(value);
        vectors.set(value.id, await loadPlain(machine, value, packed ? () => {} : report));
      }
    }
    packer.finish();
  } catch (error) {
    throw refusal(error, values, current);
  }
  for (const value of values) {
    const first = firsts.get(keyOf(value))!;
    const matrix = matrices.get(first.id), vector = vectors.get(first.id);
    if (matrix) matrices.set(value.id, matrix);
    if (vector !== undefined) vectors.set(value.id, vector);
  }
  return { matrices, vectors, bytes };
}

function checkLength({ tensor, shape, dtype }: Value): void {
  const { name, format, byteLength, source } = tensor!;
  const count = elementCount(shape as readonly number[]);
  const wanted = dtype === "f32"
    ? formatBytes(getFormat(format), count)
    : count * hostElementBytes(dtype);
  if (wanted === byteLength) return;
  throw new FormatError(`${byteLength} bytes do not hold ${count} values of ${format}`, {
    file: source.name,
    place: name,
  });
}

async function loadMatrix(
  packer: Packer,
  value: Value,
  report: (bytes: number) => void,
  rounded: boolean,
): Promise<Packed> {
  const { name, format, source, offset } = value.tensor!;
  const [rows, columns] = matrixSize(value);
  const readInto = (at: number, target: Uint8Array) => source.readInto(offset + at, target);
  return await packer.pack({ name, format, rows, columns, readInto }, report, rounded);
}

/** What a weight is refused for, as an error of its file. */
function refusal(error: unknown, values: readonly Value[], value: Value | undefined): unknown {
  if (!(error instanceof RangeError) || error instanceof OutOfMemoryError) return error;
  // Found out while the next one was read.
  const own = error instanceof WeightError
    ? values.find(({ tensor }) => tensor!.name === error.weight) ?? value
    : value;
  const { name, source } = own!.tensor!;
  return new FormatError(error.message, { file: source.name, place: name, cause: error });
}

async function loadPlain(
  machine: Machine,
  { dtype, shape, tensor }: Value,
  report: (bytes: number) => void,
): Promise<number> {
  const { format, source, offset, byteLength } = tensor!;
  const count = elementCount(shape as readonly number[]);
  const address = machine.allocate(count * hostElementBytes(dtype));
  if (dtype === "f32" && format !== "F32") {
    const bytes = new Uint8Array(byteLength);
    await source.readInto(offset, bytes);
    const values = new Float32Array(count);
    getFormat(format).decode(bytes, values);
    machine.f32(address, count).set(values);
  } else if (byteLength > 0) await source.readInto(offset, machine.u8(address, byteLength));
  report(byteLength);
  return address;
}
