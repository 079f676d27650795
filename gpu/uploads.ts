// Bytes of files on their way into buffers, rearranged by the device (repack.ts) or as they are. They are read straight into
// memory that the device copies from: several areas, so that it copies out of one while the next is filled. The host
// touches no byte a second time, and whoever loads waits for little more than the file.

import { BUFFER_USAGE, MAP_WRITE } from "./constants.ts";
import { failureOf, GpuFailure } from "./failure.ts";
import { type GpuMemory, STORAGE_USAGE } from "./gpu.ts";
import type { GpuSlice } from "./kernel.ts";
import { spread } from "./program.ts";
import { type PlaneRepack, type Repack, REPACK_SHADER, REPACK_WORDS } from "./repack.ts";

/** Bytes of an area. */
export const UPLOAD_BYTES: number = 16 << 20;
const AREAS = 3;
/** Ranges begin at its multiples, and the first not at 0: parts of words may begin before a range does. */
const ALIGNMENT = 16;
/** From the uniforms of a dispatch to those of the next. */
const BLOCK = 256;
const UNIFORM_BYTES = 32;
/** Dispatches of an area. */
const MOST_DISPATCHES = 512;

/** A place in a buffer, `at` bytes from the begin of a slice: a multiple of 4. */
export interface UploadPlace {
  readonly slice: GpuSlice;
  readonly at: number;
}

/** Bytes to be brought. */
export interface Upload {
  /** Of the file, a multiple of 4, {@linkcode UPLOAD_BYTES} at most. */
  readonly bytes: number;
  /** Puts them there. */
  fill(target: Uint8Array): void | Promise<void>;
  /** How they are rearranged, whole units, to a place for each plane; absent: as they are, to one place. */
  readonly repack?: Repack | undefined;
  readonly places: readonly UploadPlace[];
}

/** What brings bytes, in the order in which they are given. */
export interface Uploads {
  /**
   * Reads bytes, and hands over what has filled an area.
   *
   * @throws {GpuFailure} `lost`, if the device is gone; `shader`, if it does not take the one that rearranges.
   */
  add(upload: Upload): Promise<void>;
  /** Hands over the rest. */
  flush(): Promise<void>;
  /** Frees its memory; what was handed over is still brought. */
  destroy(): void;
}

interface Area {
  readonly buffer: GPUBuffer;
  /** Where bytes are put, as long as it is mapped. */
  range: ArrayBuffer | undefined;
  /** Its mapping, if it is on its way. */
  ready: Promise<unknown> | undefined;
}

/** Makes uploads of `bytes` bytes in all. */
export function createUploads(gpu: GpuMemory, bytes: number): Uploads {
  const { device } = gpu;
  const { COPY_SRC, MAP_WRITE: MAPPABLE } = BUFFER_USAGE;
  const size = Math.min(UPLOAD_BYTES, aligned(bytes)) + 2 * ALIGNMENT;
  const areas = Array.from(
    { length: Math.min(AREAS, Math.ceil(bytes / UPLOAD_BYTES)) },
    (): Area => {
      const buffer = gpu.createBuffer("upload", size, MAPPABLE | COPY_SRC);
      return { buffer, range: buffer.getMappedRange(), ready: undefined };
    },
  );
  const file = sliceOf(gpu.createBuffer("uploaded", size, STORAGE_USAGE), size);
  const repacker = createRepacker(gpu, file);
  let turn = 0, used = ALIGNMENT;
  let copies: { readonly from: number; readonly bytes: number; readonly place: UploadPlace }[] = [];
  /** Whether ranges may be taken without awaiting their mapping (readback.ts); found out when one is used again. */
  let isImmediate: boolean | undefined;

  async function rangeOf(area: Area): Promise<ArrayBuffer> {
    if (area.range) return area.range;
    try {
      const ready = area.ready ?? mapping(area.buffer);
      if (isImmediate !== false) {
        const range = taken(area.buffer);
        isImmediate = range !== undefined;
        if (range) return area.range = range;
      }
      await ready;
      return area.range = area.buffer.getMappedRange();
    } catch (cause) {
      throw new GpuFailure("lost", "the device takes no weights", { cause });
    }
  }

  async function flush(): Promise<void> {
    if (used === ALIGNMENT) return;
    const area = areas[turn]!, encoder = device.createCommandEncoder();
    area.buffer.unmap();
    area.range = area.ready = undefined;
    if (repacker.count > 0) {
      encoder.copyBufferToBuffer(area.buffer, 0, file.buffer, 0, aligned(used));
      await repacker.encode(encoder);
    }
    for (const { from, bytes, place: { slice: { buffer, offset }, at } } of copies) {
      encoder.copyBufferToBuffer(area.buffer, from, buffer, offset + at, bytes);
    }
    device.queue.submit([encoder.finish()]);
    // Where mappings are awaited, they are on their way while the other areas are filled.
    if (isImmediate === false) area.ready = mapping(area.buffer);
    [copies, used, turn] = [[], ALIGNMENT, (turn + 1) % areas.length];
  }

  async function add(upload: Upload): Promise<void> {
    const { bytes, repack, places } = upload;
    const isFull = used + aligned(bytes) + ALIGNMENT > size ||
      repacker.count + places.length > MOST_DISPATCHES;
    if (isFull) await flush();
    const range = await rangeOf(areas[turn]!);
    await upload.fill(new Uint8Array(range, used, bytes));
    if (repack) repacker.add(repack, { from: used, bytes, places });
    else copies.push({ from: used, bytes, place: places[0]! });
    used += aligned(bytes);
  }

  return {
    add: (upload) => told(() => add(upload)),
    flush: () => told(flush),
    destroy() {
      for (const { buffer } of [...areas, file]) gpu.destroyBuffer(buffer);
      repacker.destroy();
    },
  };
}

interface Repacker {
  /** Dispatches that were added since the last were encoded. */
  readonly count: number;
  /** Adds those of bytes that lie `from` a byte of the file's buffer on. */
  add(
    repack: Repack,
    range: Pick<Upload, "bytes" | "places"> & { readonly from: number },
  ): void;
  encode(encoder: GPUCommandEncoder): Promise<void>;
  destroy(): void;
}

/** What rearranges bytes of a buffer. */
function createRepacker(gpu: GpuMemory, file: GpuSlice): Repacker {
  const { device, pipelines } = gpu, { UNIFORM, COPY_DST } = BUFFER_USAGE;
  const uniforms = gpu.createBuffer("uploads", MOST_DISPATCHES * BLOCK, UNIFORM | COPY_DST);
  const blocks = new Uint32Array(MOST_DISPATCHES * BLOCK / 4);
  const tables = new Map<PlaneRepack, GpuSlice>();
  const kinds = { file, table: file, plane: { ...file, access: "read_write" as const } };
  const layout = pipelines.layout(REPACK_SHADER, kinds);
  let dispatches: { readonly group: GPUBindGroup; readonly words: number }[] = [];

  function tableOf(plane: PlaneRepack): GpuSlice {
    let slice = tables.get(plane);
    if (!slice) {
      const { byteLength } = plane.table;
      slice = sliceOf(gpu.createBuffer("repack table", byteLength, STORAGE_USAGE), byteLength);
      device.queue.writeBuffer(slice.buffer, 0, plane.table);
      tables.set(plane, slice);
    }
    return slice;
  }

  return {
    get count() {
      return dispatches.length;
    },
    add({ fileWords, planes }, { from, bytes, places }) {
      const units = bytes / 4 / fileWords;
      planes.forEach((plane, i) => {
        const { slice, at } = places[i]!, offset = dispatches.length * BLOCK;
        const words = units * plane.words;
        blocks.set([words, at / 4, plane.words, from / 4, fileWords], offset / 4);
        const own = { buffer: uniforms, offset, bytes: UNIFORM_BYTES };
        const entries = [file, tableOf(plane), slice, own].map((bound, binding) => ({
          binding,
          resource: { buffer: bound.buffer, offset: bound.offset, size: aligned(bound.bytes) },
        }));
        const group = device.createBindGroup({ label: "repack", layout, entries });
        dispatches.push({ group, words });
      });
    },
    async encode(encoder) {
      const { pipeline } = await pipelines.get(REPACK_SHADER, kinds);
      device.queue.writeBuffer(uniforms, 0, blocks, 0, dispatches.length * BLOCK / 4);
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      for (const { group, words } of dispatches) {
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(...spread("repack", [Math.ceil(words / REPACK_WORDS)]));
      }
      pass.end();
      dispatches = [];
    },
    destroy() {
      for (const { buffer } of tables.values()) gpu.destroyBuffer(buffer);
      gpu.destroyBuffer(uniforms);
    },
  };
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

function sliceOf(buffer: GPUBuffer, bytes: number): GpuSlice {
  return { buffer, offset: 0, bytes, access: "read" };
}

function mapping(buffer: GPUBuffer): Promise<unknown> {
  const ready = buffer.mapAsync(MAP_WRITE);
  ready.catch(() => {}); // whoever waits for it is told
  return ready;
}

/** Does something, and names the loss of the device as what it is, whatever found it. */
async function told(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (error instanceof GpuFailure) throw error;
    const failure = failureOf(error);
    throw failure.kind === "lost" ? failure : error;
  }
}

/** The range of a buffer whose mapping was asked for, if it is there at once. */
function taken(buffer: GPUBuffer): ArrayBuffer | undefined {
  try {
    return buffer.getMappedRange();
  } catch {
    return undefined;
  }
}
