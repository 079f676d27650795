// Weights on their way from a file to the GPU: a run of rows at a time, so that host memory stays small whatever the size of a
// model. A GPU arranges rows for its kernels by itself (gpu/uploads.ts); for formats that are decoded, small models, and
// adapters that are the processor, the host packs them from one staging area into another. Buffers are made before the
// first byte is read; a model that does not fit is refused at once. A tensor that several values share (an embedding that
// is also the head) is loaded once.

import { OFFSET_ALIGNMENT } from "../../../gpu/constants.ts";
import { type GpuMemory, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice, GpuWeight, GpuWeightPart } from "../../../gpu/kernel.ts";
import { type Repack, repackOf } from "../../../gpu/repack.ts";
import { createUploads, UPLOAD_BYTES, type Uploads } from "../../../gpu/uploads.ts";
import { FLOAT_LAYOUT, gpuLayoutOf, type GpuWeightLayout } from "../../../gpu/weight_layout.ts";
import { writeBytes } from "../../../gpu/write.ts";
import { findNonFinite } from "../../../quant/finite.ts";
import { formatBytes, getFormat } from "../../../quant/mod.ts";
import { readBeside } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import type { Value } from "../../graph/graph.ts";
import { elementCount } from "../../ops/host_tensor.ts";
import type { PrepareOptions } from "../backend.ts";
import type { StreamPlan } from "../streaming/slots.ts";
import { aligned } from "./values.ts";
import type { Plan } from "../../plan/plan.ts";
import { distinctWeights, isMatrix, matrixSize, weightKey, weightsOf } from "../plan_weights.ts";

/** Most bytes of a file that are held at once. */
const STAGING_BYTES = 8 << 20;
/** Less is packed sooner than a shader for it is compiled. */
const MUCH_BYTES = 4 << 20;
/** Most bytes of a buffer that several matrices share. */
const SHARED_BYTES = 256 << 20;
/** The queue keeps what is written until it is told to go on. */
const SUBMIT_BYTES = 64 << 20;

/** Weight matrices by value id, buffers made and still empty. */
export interface GpuWeights {
  readonly matrices: ReadonlyMap<number, GpuWeight>;
  /** Bytes on the GPU. */
  readonly bytes: number;
}

/** Bytes that a matrix takes on the GPU. */
export function gpuMatrixBytes(value: Value): number {
  const [rows, columns] = matrixSize(value);
  const layout = gpuLayoutOf(value.tensor!.format, columns);
  const groups = Math.ceil(rows / layout.rowGroup);
  return layout.planeBytes(columns).reduce((sum, bytes) => sum + aligned(groups * bytes), 0);
}

/**
 * Makes the buffers of all matrices of a plan.
 *
 * @throws {FormatError} If a tensor's bytes do not fit its shape.
 */
export function allocateGpuWeights(
  gpu: GpuMemory,
  { plan, stream, packed }: {
    readonly plan: Plan;
    readonly stream?: StreamPlan | undefined;
    /** Ids of weights that are packed though they are no matrices. */
    readonly packed: ReadonlySet<number>;
  },
): GpuWeights {
  const matrices = new Map<number, GpuWeight>();
  const firsts = distinctWeights(plan);
  const values = (stream?.kinds ?? []).flatMap(({ weights, slots }) => weights.slice(0, slots));
  const streamed = stream?.kinds.flatMap(({ weights }) => weights) ?? [];
  const later = new Set(streamed.map(({ id }) => id));
  for (const value of firsts.values()) {
    const isPacked = isMatrix(value) || packed.has(value.id);
    if (isPacked && !later.has(value.id)) values.push(value);
  }
  for (const value of [...streamed, ...firsts.values()]) checkLength(value);
  const placed = new Map(allocateMatrices(gpu, values).map((weight, i) => [values[i]!, weight]));
  for (const [{ id }, weight] of placed) matrices.set(id, weight);
  for (const { weights, slots } of stream?.kinds ?? []) {
    weights.forEach(({ id }, i) => matrices.set(id, placed.get(weights[i % slots]!)!));
  }
  const bytes = values.reduce((sum, value) => sum + gpuMatrixBytes(value), 0);
  for (const value of weightsOf(plan)) {
    const matrix = matrices.get(firsts.get(weightKey(value))!.id);
    if (matrix) matrices.set(value.id, matrix);
  }
  return { matrices, bytes };
}

function checkLength({ tensor, shape }: Value): void {
  const { name, format, byteLength, source } = tensor!;
  const columns = (shape as readonly number[]).at(-1) ?? 1;
  const rows = elementCount(shape as readonly number[]) / (columns || 1);
  if (columns % getFormat(format).blockSize === 0) {
    if (rows * formatBytes(getFormat(format), columns) === byteLength) return;
  }
  throw new FormatError(`${byteLength} bytes do not hold [${shape}] values of ${format}`, {
    file: source.name,
    place: name,
  });
}

/** Tables of layouts, each in memory once. */
type Tables = (layout: GpuWeightLayout) => readonly GpuSlice[];

function createTables(gpu: GpuMemory): Tables {
  const made = new Map<string, GpuSlice>();
  return ({ id, table }) => {
    if (!table) return [];
    const known = made.get(id);
    if (known) return [known];
    const bytes = table.byteLength;
    const buffer = gpu.createBuffer(`table of ${id}`, bytes, STORAGE_USAGE);
    const slice: GpuSlice = { buffer, offset: 0, bytes, access: "read" };
    made.set(id, slice);
    return [slice];
  };
}

/** Fills the tables of all matrices. */
function writeTables(device: GPUDevice, matrices: Iterable<GpuWeight>): void {
  const written = new Set<GPUBuffer>();
  for (const { format, columns, parts: [part] } of matrices) {
    const { table } = gpuLayoutOf(format, columns), { buffer } = part!.planes.at(-1)!;
    if (!table || written.has(buffer)) continue;
    written.add(buffer);
    writeBytes(device, { target: { buffer, offset: 0 }, data: table });
  }
}

/**
 * Makes their buffers, a few that all share: handing a dispatch over costs Dawn half as much where its planes are of one
 * buffer, and a third where all dispatches' are (bench/results/gpu-h200.md).
 */
function allocateMatrices(gpu: GpuMemory, values: readonly Value[]): GpuWeight[] {
  const tables = createTables(gpu), all = values.map((value) => partsOf(gpu, value));
  const slices = sharedSlices(gpu, all.flat().flatMap(({ planes }) => planes));
  let next = 0;
  return values.map((value, i): GpuWeight => {
    const [rows, columns] = matrixSize(value), { format } = value.tensor!;
    const layout = gpuLayoutOf(format, columns);
    const parts = all[i]!.map(({ planes, ...part }): GpuWeightPart => ({
      ...part,
      planes: [...planes.map(() => slices[next++]!), ...tables(layout)],
    }));
    return { layout: layout.id, format, rows, columns, parts };
  });
}

/** Rows of a matrix that can be bound at once, and the bytes of their planes. */
interface PartSizes extends Pick<GpuWeightPart, "firstRow" | "rows"> {
  readonly planes: readonly number[];
}

function partsOf({ capabilities }: GpuMemory, value: Value): PartSizes[] {
  const [rows, columns] = matrixSize(value);
  const layout = gpuLayoutOf(value.tensor!.format, columns);
  const planeBytes = layout.planeBytes(columns);
  const limit = Math.min(capabilities.maxBindingBytes, capabilities.maxBufferBytes);
  const mostGroups = Math.floor(limit / Math.max(...planeBytes, 1));
  const groups = Math.ceil(rows / layout.rowGroup);
  const parts: PartSizes[] = [];
  for (let first = 0; first < Math.max(1, groups); first += mostGroups) {
    const count = Math.min(mostGroups, groups - first);
    const firstRow = first * layout.rowGroup;
    parts.push({
      firstRow,
      rows: Math.min(rows - firstRow, count * layout.rowGroup),
      planes: planeBytes.map((bytes) => count * bytes),
    });
  }
  return parts;
}

/** Ranges of so many bytes, in order. */
function sharedSlices(gpu: GpuMemory, sizes: readonly number[]): GpuSlice[] {
  const most = Math.min(SHARED_BYTES, gpu.capabilities.maxBufferBytes);
  const slices: GpuSlice[] = [];
  for (let end = 0; end < sizes.length;) {
    const first = end, offsets: number[] = [];
    let total = 0;
    do {
      offsets.push(total);
      total += rangeBytes(sizes[end++]!);
    } while (end < sizes.length && total + rangeBytes(sizes[end]!) <= most);
    const buffer = gpu.createBuffer("weights", total, STORAGE_USAGE);
    offsets.forEach((offset, i) =>
      slices.push({ buffer, offset, bytes: sizes[first + i]!, access: "read" })
    );
  }
  return slices;
}

/** Planes without elements are bound too. */
function rangeBytes(bytes: number): number {
  return Math.max(OFFSET_ALIGNMENT, aligned(bytes));
}

/** Where float32 values of a one-dimensional weight go. */
export type VectorPlace = (value: Value) => { readonly buffer: GPUBuffer; readonly offset: number };

/**
 * Fills the buffers.
 *
 * @throws {FormatError} If a weight holds numbers that are not finite.
 */
export async function loadGpuWeights(
  gpu: GpuMemory,
  { plan, weights: { matrices }, placeOf, stream, ...how }: {
    readonly plan: Plan;
    readonly weights: GpuWeights;
    readonly placeOf: VectorPlace;
    /** What of them comes later. */
    readonly stream?: StreamPlan | undefined;
    /** Whether the device arranges what it can; default: a GPU, if that is much. */
    readonly onDevice?: boolean | undefined;
  },
  { signal, onProgress }: PrepareOptions,
): Promise<void> {
  const { device } = gpu;
  const later = new Set(stream?.kinds.flatMap(({ weights }) => weights));
  writeTables(device, matrices.values());
  const firsts = [...distinctWeights(plan).values()].filter((value) => !later.has(value));
  const totalBytes = firsts.reduce((sum, { tensor }) => sum + tensor!.byteLength, 0);
  let loadedBytes = 0;
  let queued = 0;
  const report = (bytes: number) => {
    signal?.throwIfAborted();
    loadedBytes += bytes;
    queued += bytes;
    if (queued > SUBMIT_BYTES) {
      device.queue.submit([]);
      queued = 0;
    }
    onProgress?.({ loadedBytes, totalBytes });
  };
  const { onDevice = !gpu.capabilities.isSoftware && totalBytes > MUCH_BYTES } = how;
  const uploads = onDevice ? createUploads(gpu, totalBytes) : undefined;
  const staging = createStaging();
  try {
    for (const value of firsts) {
      signal?.throwIfAborted();
      const weight = matrices.get(value.id), tensor = value.tensor!;
      const upload = uploads && weight && uploadOf(weight);
      if (upload) await uploadMatrix(uploads, { weight, tensor, upload, report });
      else if (weight) await loadMatrix(device, { weight, tensor, staging, report });
      else {
        writeBytes(device, { target: placeOf(value), data: await readVector(tensor) });
        report(tensor.byteLength);
      }
    }
    await uploads?.flush();
  } finally {
    await uploads?.destroy();
  }
  device.queue.submit([]);
}

/** How the rows of a matrix are uploaded. */
interface MatrixUpload {
  readonly repack: Repack | undefined;
  /** Rows at a time. */
  readonly run: number;
}

/** Undefined where the host has to pack them. */
function uploadOf({ format: name, columns, parts }: GpuWeight): MatrixUpload | undefined {
  const format = getFormat(name), layout = gpuLayoutOf(name, columns), { rowGroup } = layout;
  const rowBytes = formatBytes(format, columns);
  const run = Math.floor(UPLOAD_BYTES / rowBytes / rowGroup) * rowGroup;
  if (run === 0 || parts.some(({ rows }) => rows % rowGroup > 0)) return undefined;
  if (isAsInFile(layout, { format: name, columns, rowBytes })) return { repack: undefined, run };
  const repack = repackOf(format, layout);
  return repack && rowGroup * columns % repack.columns === 0 ? { repack, run } : undefined;
}

/** Whether rows of floats or bytes lie on the GPU as they lie in the file. */
function isAsInFile(
  { id, planeBytes }: GpuWeightLayout,
  { format, columns, rowBytes }: {
    readonly format: string;
    readonly columns: number;
    readonly rowBytes: number;
  },
): boolean {
  const [bytes, ...others] = planeBytes(columns);
  return others.length === 0 && bytes === rowBytes && (id !== FLOAT_LAYOUT.id || format === "F32");
}

async function uploadMatrix(
  uploads: Uploads,
  { weight: { format, columns, parts }, tensor: { source, offset }, upload, report }: {
    readonly weight: GpuWeight;
    readonly tensor: TensorInfo;
    readonly upload: MatrixUpload;
    readonly report: (bytes: number) => void;
  },
): Promise<void> {
  const layout = gpuLayoutOf(format, columns), planeBytes = layout.planeBytes(columns);
  const rowBytes = formatBytes(getFormat(format), columns), { repack, run } = upload;
  for (const { firstRow, rows, planes } of parts) {
    for (let row = 0; row < rows; row += run) {
      const bytes = Math.min(run, rows - row) * rowBytes,
        from = offset + (firstRow + row) * rowBytes;
      const places = planeBytes.map((own, i) => (
        { slice: planes[i]!, at: row / layout.rowGroup * own }
      ));
      await uploads.add({
        ...{ bytes, repack, places },
        fill: (target, at) => readBeside(source, { offset: from + at, target }),
      });
      report(bytes);
    }
  }
}

/**
 * Makes what fills the buffers of a matrix, again and again, before what is submitted next.
 *
 * @param onDevice Whether the device arranges what it can; default: a GPU.
 * @throws {FormatError} As {@linkcode loadGpuWeights}.
 */
export function createMatrixLoader(
  gpu: GpuMemory,
  onDevice: boolean = !gpu.capabilities.isSoftware,
): (weight: GpuWeight, tensor: TensorInfo) => Promise<void> {
  const staging = createStaging(), report = () => {};
  const uploads = onDevice ? createUploads(gpu, UPLOAD_BYTES) : undefined;
  return async (weight, tensor) => {
    const upload = uploads && uploadOf(weight);
    if (!upload) return await loadMatrix(gpu.device, { weight, tensor, staging, report });
    await uploadMatrix(uploads, { weight, tensor, upload, report });
    await uploads.flush();
  };
}

/** Byte ranges that are used again and again. */
interface Staging {
  take(name: string, bytes: number): Uint8Array<ArrayBuffer>;
}

function createStaging(): Staging {
  const areas = new Map<string, Uint8Array<ArrayBuffer>>();
  return {
    take(name, bytes) {
      let area = areas.get(name);
      if (!area || area.length < bytes) areas.set(name, area = new Uint8Array(bytes));
      return area.subarray(0, bytes);
    },
  };
}

async function loadMatrix(
  device: GPUDevice,
  { weight: { layout: id, format, columns, parts }, tensor, staging, report }: {
    readonly weight: GpuWeight;
    readonly tensor: TensorInfo;
    readonly staging: Staging;
    readonly report: (bytes: number) => void;
  },
): Promise<void> {
  const layout = gpuLayoutOf(format, columns);
  if (layout.id !== id) throw new TypeError(`${tensor.name} was placed as ${id}`);
  const rowBytes = formatBytes(getFormat(format), columns);
  const planeBytes = layout.planeBytes(columns);
  const { rowGroup } = layout;
  const widest = Math.max(rowBytes * rowGroup, ...planeBytes, 1);
  const run = Math.max(1, Math.floor(STAGING_BYTES / widest)) * rowGroup;
  for (const { firstRow, rows, planes } of parts) {
    for (let row = 0; row < rows; row += run) {
      const count = Math.min(run, rows - row);
      const file = staging.take("file", count * rowBytes);
      await tensor.source.readInto(tensor.offset + (firstRow + row) * rowBytes, file);
      const groups = Math.ceil(count / rowGroup);
      const packed = planeBytes.map((bytes, plane) =>
        staging.take(`plane ${plane}`, groups * bytes).fill(0)
      );
      packRows(layout, { file, size: { format, rows: count, columns }, planes: packed }, tensor);
      packed.forEach((bytes, plane) => {
        const { buffer, offset } = planes[plane]!;
        const at = offset + row / rowGroup * planeBytes[plane]!;
        writeBytes(device, { target: { buffer, offset: at }, data: bytes });
      });
      report(count * rowBytes);
    }
  }
}

function packRows(
  layout: GpuWeightLayout,
  { file, size, planes }: {
    readonly file: Uint8Array;
    readonly size: { readonly format: string; readonly rows: number; readonly columns: number };
    readonly planes: readonly Uint8Array[];
  },
  { name, source }: TensorInfo,
): void {
  try {
    layout.pack(file, size, planes);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new FormatError(cause.message, { file: source.name, place: name, cause });
  }
}

async function readVector(
  { name, format, shape, source, offset, byteLength }: TensorInfo,
): Promise<Float32Array<ArrayBuffer>> {
  const bytes = new Uint8Array(byteLength);
  await source.readInto(offset, bytes);
  const values = new Float32Array(elementCount(shape));
  getFormat(format).decode(bytes, values);
  const bad = findNonFinite(values);
  if (bad < 0) return values;
  throw new FormatError(`value ${bad} is ${values[bad]}`, { file: source.name, place: name });
}
