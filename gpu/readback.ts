// Reading results without waiting longer than the GPU works. In Deno an awaited mapAsync() sleeps for ten
// milliseconds, but the call itself has already waited for the GPU: of a buffer that has been mapped before, the range
// can be taken at once. Whether that holds here is tried when the first readback of a device is made, and
// checked at every use: each copy carries the number of its step along, and a range that shows another
// number is an error, never an old result. Where it does not hold, mappings are awaited, and whoever has more work for
// the GPU hands it over before the wait, so that there are several readbacks in flight instead of a pause.

import { BUFFER_USAGE, MAP_READ } from "./constants.ts";
import { GpuFailure } from "./failure.ts";

/** Bytes in front of the data: the number of the copy. */
const HEADER = 16;
const TRIALS = 3;
/** Larger buffers are not made mapped, which takes as much memory again for a moment. */
const MAPPED_FIRST = 4 << 20;

/** Whether a buffer is mapped while it is made, so that it has been mapped before. */
export function isMappedFirst({ size, usage }: Pick<GPUBuffer, "size" | "usage">): boolean {
  return (usage & BUFFER_USAGE.MAP_READ) !== 0 && size <= MAPPED_FIRST;
}

/** A buffer through which results reach JavaScript. */
export interface Readback {
  /** Whether results are there without a pause of the event loop. */
  readonly isImmediate: boolean;
  /** Appends copies: a `read` gives the bytes of the sources, one behind the other, from byte `at` on. */
  copy(encoder: GPUCommandEncoder, sources: readonly CopySource[], at?: number): void;
  /** Numbers the copies that are submitted next; call it before every submission that has some. */
  stamp(): void;
  /**
   * Hands over what the last submitted copies brought, `bytes` in all; valid during the call of `use`.
   *
   * @param between Called before the results are taken, and before their mapping is awaited: the time to give the GPU
   * more work, whose results go through another readback.
   * @throws {GpuFailure} If the device is lost or the data is not that of the last copy.
   */
  read(bytes: number, use: ReadbackUse, between?: () => void): void | Promise<void>;
  /** Frees the buffers. */
  destroy(): void;
}

/**
 * Copies ranges into host memory, once and with a pause of the event loop.
 *
 * @throws {GpuFailure} If the device is lost.
 */
export async function readOnce(
  gpu: ReadbackDevice,
  sources: readonly CopySource[],
): Promise<Uint8Array<ArrayBuffer>> {
  const { device } = gpu;
  const total = sources.reduce((sum, { bytes }) => sum + bytes, 0);
  const { COPY_DST, MAP_READ: MAPPABLE } = BUFFER_USAGE;
  const target = gpu.createBuffer("copy", total, MAPPABLE | COPY_DST);
  try {
    const encoder = device.createCommandEncoder();
    let at = 0;
    for (const { buffer, offset, bytes } of sources) {
      if (bytes > 0) encoder.copyBufferToBuffer(buffer, offset, target, at, bytes);
      at += bytes;
    }
    device.queue.submit([encoder.finish()]);
    await target.mapAsync(MAP_READ).catch((cause) => {
      throw new GpuFailure("lost", "the device gave no results", { cause });
    });
    const copy = new Uint8Array(rangeOf(target)).slice(0, total);
    target.unmap();
    return copy;
  } finally {
    gpu.destroyBuffer(target);
  }
}

// Of a device that is lost nothing is mapped, and it may be the first thing that shows it.
function rangeOf(buffer: GPUBuffer, bytes?: number): ArrayBuffer {
  try {
    return buffer.getMappedRange(0, bytes);
  } catch (cause) {
    throw new GpuFailure("lost", "the device gave no results", { cause });
  }
}

/** Takes results that begin at `start`. */
export type ReadbackUse = (bytes: ArrayBuffer, start: number) => void;

/** A range to read; multiples of 4. */
export interface CopySource {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly bytes: number;
}

/** Bytes of what is copied one behind the other. */
export function bytesOfAll(sources: readonly Pick<CopySource, "bytes">[]): number {
  return sources.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** What a readback needs of a device. */
export interface ReadbackDevice {
  readonly device: GPUDevice;
  createBuffer(label: string, bytes: number, usage: number): GPUBuffer;
  destroyBuffer(buffer: GPUBuffer): void;
}

/** Whether ranges can be taken at once, by device: found out at its first readback. */
const immediate = new WeakMap<GPUDevice, boolean>();

/** Makes a readback of up to `bytes` bytes and tries out whether ranges can be taken at once. */
export async function createReadback(gpu: ReadbackDevice, bytes: number): Promise<Readback> {
  const { device } = gpu;
  const { COPY_DST, COPY_SRC, MAP_READ: MAPPABLE } = BUFFER_USAGE;
  const target = gpu.createBuffer("readback", HEADER + bytes, MAPPABLE | COPY_DST);
  const stamp = gpu.createBuffer("stamp", HEADER, COPY_SRC | COPY_DST);
  const number = new Uint32Array(1);
  let isImmediate = false;

  function copy(encoder: GPUCommandEncoder, sources: readonly CopySource[], at = 0): void {
    if (at === 0) encoder.copyBufferToBuffer(stamp, 0, target, 0, 4);
    for (const { buffer, offset, bytes } of sources) {
      encoder.copyBufferToBuffer(buffer, offset, target, HEADER + at, bytes);
      at += bytes;
    }
  }

  function writeStamp(): void {
    number[0]!++;
    device.queue.writeBuffer(stamp, 0, number);
  }

  function take(bytes: number, use: ReadbackUse): void {
    const range = rangeOf(target, Math.ceil((HEADER + bytes) / 8) * 8);
    try {
      if (new Uint32Array(range, 0, 1)[0] !== number[0]) {
        throw new GpuFailure("validation", "a readback gave the results of another step");
      }
      use(range, HEADER);
    } finally {
      target.unmap();
    }
  }

  function read(
    bytes: number,
    use: ReadbackUse,
    between: () => void = () => {},
  ): void | Promise<void> {
    const ready = target.mapAsync(MAP_READ);
    ready.catch(() => {}); // whoever waits for it is told
    try {
      between();
    } catch (error) {
      target.unmap();
      throw error;
    }
    if (!isImmediate) return awaited(ready).then(() => take(bytes, use));
    take(bytes, use);
  }

  async function awaited(ready: Promise<unknown>): Promise<void> {
    try {
      await ready;
    } catch (cause) {
      throw new GpuFailure("lost", "the device gave no results", { cause });
    }
  }

  /** One empty copy, submitted. */
  function submitStamp(): void {
    const encoder = device.createCommandEncoder();
    copy(encoder, []);
    writeStamp();
    device.queue.submit([encoder.finish()]);
  }

  // Taking the range of a buffer that never was mapped brings Deno down.
  if (!isMappedFirst(target)) {
    submitStamp();
    await read(0, () => {});
  }
  if (!immediate.has(device)) immediate.set(device, await tryImmediate());
  isImmediate = immediate.get(device)!;

  async function tryImmediate(): Promise<boolean> {
    isImmediate = true;
    try {
      for (let trial = 0; trial < TRIALS; trial++) {
        submitStamp();
        read(0, () => {});
      }
      return true;
    } catch {
      // The failed mapping is still on its way.
      await device.queue.onSubmittedWorkDone();
      target.unmap();
      return false;
    }
  }

  return {
    isImmediate,
    copy,
    stamp: writeStamp,
    read,
    destroy() {
      gpu.destroyBuffer(target);
      gpu.destroyBuffer(stamp);
    },
  };
}
