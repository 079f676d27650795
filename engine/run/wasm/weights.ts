// Weights into WASM memory, tensor by tensor: matrices are packed for their kernels, some of them rounded on
// the way (rounded_weights.ts); anything else becomes plain float32, or stays as it lies in the file where
// the graph wants another type. A tensor that several values share (an embedding that is also the head) is
// loaded once; one that is read as a matrix by a kernel and element by element by another node is there in
// both forms. Places are known before anything is read, so that all else can be made ready while workers load: the
// loader is started as soon as a graph is built, when nothing is planned yet.

import { formatBytes, getFormat } from "../../../quant/mod.ts";
import type { Machine } from "../../../wasm/machine.ts";
import { OutOfMemoryError } from "../../../wasm/allocator.ts";
import { createPacker, type Packer, WeightError } from "../../../wasm/pack.ts";
import {
  createFilePacker,
  type FileBytes,
  type FilePacker,
  type PendingWeight,
} from "../../../wasm/pack_files.ts";
import { type Packed, placeWeight } from "../../../wasm/place_weight.ts";
import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import type { Value } from "../../graph/graph.ts";
import { elementCount, hostElementBytes } from "../../ops/host_tensor.ts";
import type { PrepareOptions } from "../backend.ts";
import { isMatrix, matrixSize, weightKey } from "../plan_weights.ts";
import { plainBytes } from "./estimate.ts";

/** Where weights lie, by value id. */
export interface WasmWeights {
  readonly matrices: ReadonlyMap<number, Packed>;
  /** Addresses of plain elements. */
  readonly vectors: ReadonlyMap<number, number>;
}

/** Loads weights into one machine. */
export interface WeightLoader {
  /** Bytes of WASM memory that the weights take. */
  readonly bytes: number;
  /**
   * Gives weights their places; those that were added before keep theirs.
   *
   * @param rounded Ids of those that are rounded (rounded_weights.ts).
   * @param useOf How the nodes read a weight.
   * @throws {FormatError} If a tensor's bytes do not fit its shape.
   */
  add(
    values: readonly Value[],
    rounded: ReadonlySet<number>,
    useOf?: (value: Value) => WeightUse,
  ): WasmWeights;
  /** Lets the machine's workers load what was added; once. */
  start(): void;
  /**
   * Takes part in loading until all is there that was added.
   *
   * @throws {FormatError} If a tensor holds numbers that are not finite, or cannot be read.
   */
  finish(options: Pick<PrepareOptions, "signal" | "onProgress">): Promise<void>;
}

/** How a weight is read. */
export interface WeightUse {
  readonly packed: boolean;
  readonly plain: boolean;
}

/** A weight in one of its forms. */
interface Form {
  readonly value: Value;
  /** Absent where all threads do it; then what they make of it. */
  readonly pending: PendingWeight | undefined;
  /** Bytes of the file, where they are counted for progress. */
  readonly fileBytes: number;
  /** Loads it on this thread. */
  load(packer: Packer, report: (bytes: number) => void): Promise<void>;
}

/** A weight and where it lies. */
interface Placed {
  matrix?: Packed;
  vector?: number;
}

const usualUse = (value: Value): WeightUse => ({
  packed: isMatrix(value),
  plain: !isMatrix(value),
});

/** Makes a loader. */
export function createWeightLoader(machine: Machine): WeightLoader {
  const files = createFilePacker(machine);
  const forms: Form[] = [];
  const known = new Map<string, Placed>();
  let bytes = 0;

  function place(value: Value, rounded: boolean, { packed, plain }: WeightUse): Placed {
    const key = weightKey(value, rounded);
    let placed = known.get(key);
    if (!placed) {
      checkLength(value);
      known.set(key, placed = {});
    }
    if (packed && !placed.matrix) {
      const { form, place } = placeMatrix(machine, { files, value, rounded });
      bytes += place.bytes;
      placed.matrix = place;
      forms.push(form);
    }
    if (plain && placed.vector === undefined) {
      const { form, address } = placePlain(machine, files, value);
      bytes += plainBytes(value);
      placed.vector = address;
      forms.push(placed.matrix ? { ...form, fileBytes: 0 } : form);
    }
    return placed;
  }

  return {
    get bytes() {
      return bytes;
    },
    add(values, rounded, useOf = usualUse) {
      const matrices = new Map<number, Packed>();
      const vectors = new Map<number, number>();
      const placed = values.map((value) => {
        try {
          return place(value, rounded.has(value.id), useOf(value));
        } catch (error) {
          throw refusal(error, values, value);
        }
      });
      // Also the forms that others want of a tensor.
      placed.forEach(({ matrix, vector }, i) => {
        if (matrix) matrices.set(values[i]!.id, matrix);
        if (vector !== undefined) vectors.set(values[i]!.id, vector);
      });
      return { matrices, vectors };
    },
    start: () => files.start(),
    finish: (options) => finishLoading(machine, files, forms, options),
  };
}

async function finishLoading(
  machine: Machine,
  files: FilePacker,
  forms: readonly Form[],
  { signal, onProgress }: Pick<PrepareOptions, "signal" | "onProgress">,
): Promise<void> {
  const sum = (some: readonly Form[]) => some.reduce((sum, { fileBytes }) => sum + fileBytes, 0);
  const totalBytes = sum(forms);
  const shared = sum(forms.filter(({ pending }) => pending));
  let loadedBytes = 0;
  const report = (loaded: number) => {
    loadedBytes = loaded;
    onProgress?.({ loadedBytes, totalBytes });
    signal?.throwIfAborted();
  };
  signal?.throwIfAborted();
  files.finish((read) => report(Math.min(read, shared)));
  if (shared > 0) report(shared);
  using packer = createPacker(machine);
  let current: Value | undefined;
  try {
    for (const { value, pending, load } of forms) {
      if (pending && !pending.failed) continue;
      signal?.throwIfAborted();
      current = value;
      await load(packer, (read) => pending || report(loadedBytes + read));
    }
    packer.finish();
  } catch (error) {
    throw refusal(error, forms.map(({ value }) => value), current);
  }
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

/** A tensor as threads read it; undefined if they cannot open what it is in. */
function fileBytes({ source, offset }: TensorInfo): FileBytes | undefined {
  const { file } = source;
  if (file === undefined) return undefined;
  // What has a file reads at once.
  return { file, offset, readInto: (at, target) => void source.readInto(at, target) };
}

function placeMatrix(
  machine: Machine,
  { files, value, rounded }: {
    readonly files: FilePacker;
    readonly value: Value;
    readonly rounded: boolean;
  },
): { readonly form: Form; readonly place: Packed } {
  const tensor = value.tensor!;
  const { name, format, source, offset } = tensor;
  const [rows, columns] = matrixSize(value);
  const matrix = {
    ...{ name, format, rows, columns },
    readInto: (at: number, target: Uint8Array) => source.readInto(offset + at, target),
  };
  const bytes = fileBytes(tensor);
  const pending = bytes && files.add(bytes, { format, rows, columns }, rounded);
  const place = pending?.packed ?? placeWeight(machine, { source: matrix, rounded });
  const load: Form["load"] = async (packer, report) =>
    void await packer.pack(matrix, { progress: report, rounded, place });
  return { form: { value, pending, fileBytes: tensor.byteLength, load }, place };
}

function placePlain(
  machine: Machine,
  files: FilePacker,
  value: Value,
): { readonly form: Form; readonly address: number } {
  const { dtype, shape } = value;
  const tensor = value.tensor!;
  const { format, byteLength } = tensor;
  const address = machine.allocate(
    elementCount(shape as readonly number[]) * hostElementBytes(dtype),
  );
  const bytes = fileBytes(tensor);
  const asIs = dtype !== "f32" || format === "F32";
  const pending = asIs && bytes && byteLength > 0
    ? files.addPlain(bytes, address, byteLength)
    : undefined;
  const load: Form["load"] = (_packer, report) => loadPlain(machine, { value, address, report });
  return { form: { value, pending, fileBytes: byteLength, load }, address };
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
  { value: { dtype, shape, tensor }, address, report }: {
    readonly value: Value;
    readonly address: number;
    readonly report: (bytes: number) => void;
  },
): Promise<void> {
  const { format, source, offset, byteLength } = tensor!;
  if (dtype === "f32" && format !== "F32") {
    const count = elementCount(shape as readonly number[]);
    const bytes = new Uint8Array(byteLength);
    await source.readInto(offset, bytes);
    const values = new Float32Array(count);
    getFormat(format).decode(bytes, values);
    machine.f32(address, count).set(values);
  } else if (byteLength > 0) await source.readInto(offset, machine.u8(address, byteLength));
  report(byteLength);
}
