// Bytes of files on their way into buffers, rearranged by the device (repack.ts) or as they are. The host hands a piece to
// the queue while the next is read beside it, and touches no byte a second time. Mapped memory, which files could be read
// into at once, is no faster way: taking the range of a buffer that is mapped for writing reads it in Deno, which
// took 40 ms a megabyte on an H200, where pieces of a megabyte arrive with 14 GB/s.

import { BUFFER_USAGE } from "./constants.ts";
import { type GpuMemory, STORAGE_USAGE } from "./gpu.ts";
import type { GpuSlice } from "./kernel.ts";
import { spread } from "./program.ts";
import { type PlaneRepack, type Repack, REPACK_SHADER, REPACK_WORDS } from "./repack.ts";
import { writeBytes } from "./write.ts";

/** Bytes that the device rearranges at once. */
export const UPLOAD_BYTES: number = 16 << 20;
/** Bytes that are read at once, while this thread waits: they stay in its cache. */
const PIECE = 1 << 20;
/** And of models of so many bytes, while it hands over: the two tell each other 0.2 ms later what they have done. */
const LARGE_PIECE = 8 << 20;
const MUCH = 256 << 20;
/** Ranges begin at its multiples, and the first not at 0: parts of words may begin before a range does. */
const ALIGNMENT = 16;
/** From the uniforms of a dispatch to those of the next. */
const BLOCK = 256;
const UNIFORM_BYTES = 32;
/** Dispatches at once. */
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
  /** Reads some of them, from byte `at` on; whatever it waits for, the piece before is handed over meanwhile. */
  fill(target: Uint8Array, at: number): void | Promise<void>;
  /** How they are rearranged, whole units, to a place for each plane; absent: as they are, to one place. */
  readonly repack?: Repack | undefined;
  readonly places: readonly UploadPlace[];
}

/** What brings bytes, in the order in which they are given. */
export interface Uploads {
  /**
   * Reads bytes, and hands them over, the last of them with what comes next.
   *
   * @throws What reading this or what came before did. @throws {GpuFailure} `shader`, if the device does not take the one that rearranges.
   */
  add(upload: Upload): Promise<void>;
  /** Hands over the rest and has it rearranged. @throws What reading it did. */
  flush(): Promise<void>;
  /** Waits for what is being read and frees its memory; what was handed over is still brought. */
  destroy(): Promise<void>;
}

/** Makes uploads of `bytes` bytes in all. */
export function createUploads(gpu: GpuMemory, bytes: number): Uploads {
  const { device } = gpu;
  const size = Math.min(UPLOAD_BYTES, aligned(bytes)) + 2 * ALIGNMENT;
  const file = sliceOf(gpu.createBuffer("uploaded", size, STORAGE_USAGE), size);
  const most = Math.min(bytes < MUCH ? PIECE : LARGE_PIECE, size);
  const pieces = [new Uint8Array(most), new Uint8Array(most)];
  const repacker = createRepacker(gpu, file);
  let used = ALIGNMENT;
  let reading: void | Promise<void>;
  let read: Parameters<typeof writeBytes>[1] | undefined;

  /** Begins to read the next piece, and hands over the one before. */
  async function next(fill: () => void | Promise<void>): Promise<void> {
    await reading;
    reading = fill();
    // Its reason is told to who waits for it.
    reading?.catch(() => {});
    handOver();
  }

  function handOver(): void {
    if (read) writeBytes(device, read);
    read = undefined;
  }

  async function submit(): Promise<void> {
    const encoder = device.createCommandEncoder();
    if (repacker.count > 0) await repacker.encode(encoder);
    device.queue.submit([encoder.finish()]);
    used = ALIGNMENT;
  }

  async function add(upload: Upload): Promise<void> {
    const { bytes, repack, places } = upload;
    for (let done = 0; done < bytes; done += most) {
      const data = pieces.reverse()[0]!.subarray(0, Math.min(most, bytes - done));
      await next(() => upload.fill(data, done));
      const isFull = done === 0 && (used + aligned(bytes) + ALIGNMENT > size ||
        repacker.count + places.length > MOST_DISPATCHES);
      if (isFull) await submit();
      const [{ slice, at }] = repack
        ? [{ slice: file, at: used }]
        : places as [UploadPlace, ...UploadPlace[]];
      read = { target: { buffer: slice.buffer, offset: slice.offset + at + done }, data };
      // What was read at once is still in the cache.
      if (!reading) handOver();
    }
    if (repack) repacker.add(repack, { from: used, bytes, places });
    used += aligned(bytes);
  }

  return {
    add,
    async flush() {
      await next(() => {});
      await submit();
    },
    async destroy() {
      await Promise.allSettled([reading]);
      gpu.destroyBuffer(file.buffer);
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
