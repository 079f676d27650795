// States on the GPU: a buffer each, with all slots one behind the other, so that a row finds its slot by
// multiplication and rows of one step may belong to different sessions.

import { type GpuMemory, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import { readOnce } from "../../../gpu/readback.ts";
import { writeBytes } from "../../../gpu/write.ts";
import { ResourceError, UnsupportedError } from "../../errors.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { sizeOf } from "../../plan/sizes.ts";
import { createSlotPool } from "../slots.ts";

/** The states of all slots. */
export interface GpuStates {
  readonly bytesPerSlot: number;
  readonly slotCount: number;
  /** All slots of a state. */
  slice(state: Value): GpuSlice;
  /** Takes a slot; its states are zero. */
  open(): number;
  close(slot: number): void;
  /** @throws {RangeError} If the slot is not open. */
  check(slot: number): void;
  /** Makes the slots that a warm-up wrote into zero again when they are opened. */
  markUsed(): void;
  /** The first `count` rows of every state, in the graph's order. */
  read(slot: number, count: number): Promise<Uint8Array>;
  write(slot: number, count: number, bytes: Uint8Array): void;
}

interface Part {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Reserves the states of `count` slots; fresh buffers are zero.
 *
 * @throws {ResourceError} If the slots of one state are over the limit of a binding.
 */
export function createGpuStates(gpu: GpuMemory, { states }: Graph, count: number): GpuStates {
  const { device, capabilities: { maxBindingBytes } } = gpu;
  const pool = createSlotPool(count);
  const slotBytes = states.map((state) => sizeOf(state, {}).bytes);
  states.forEach(({ name }, i) => {
    if (slotBytes[i]! % 4 !== 0) {
      throw new UnsupportedError(`states of ${slotBytes[i]} bytes cannot be copied by the GPU`, {
        place: name,
        remedy: "Use kvFormat F32 or device wasm",
      });
    }
    const bytes = slotBytes[i]! * count;
    if (bytes <= maxBindingBytes) return;
    throw new ResourceError(
      `${count} sessions take ${bytes} bytes, and the GPU's kernels can address ${maxBindingBytes} at once`,
      { place: name, remedy: "Lower contextLength or sessions" },
    );
  });
  const buffers = states.map(({ name }, i) =>
    gpu.createBuffer(name, slotBytes[i]! * count, STORAGE_USAGE)
  );
  const used = new Array<boolean>(count).fill(false);

  function leadingRows(slot: number, rows: number): Part[] {
    pool.check(slot);
    return states.map((state, i) => {
      const capacity = state.shape[0] as number;
      if (!Number.isInteger(rows) || rows < 0 || rows > capacity) {
        throw new RangeError(`Cannot copy ${rows} rows of ${state.name}: it has ${capacity}`);
      }
      const bytes = capacity === 0 ? 0 : slotBytes[i]! / capacity * rows;
      return { buffer: buffers[i]!, offset: slot * slotBytes[i]!, bytes };
    });
  }

  async function read(slot: number, rows: number): Promise<Uint8Array> {
    const parts = leadingRows(slot, rows);
    const sources = parts.map(inWords);
    const words = await readOnce(gpu, sources);
    const result = new Uint8Array(parts.reduce((sum, { bytes }) => sum + bytes, 0));
    let from = 0, to = 0;
    parts.forEach(({ offset, bytes }, i) => {
      const start = from + offset - sources[i]!.offset;
      result.set(words.subarray(start, start + bytes), to);
      to += bytes;
      from += sources[i]!.bytes;
    });
    return result;
  }

  function write(slot: number, rows: number, bytes: Uint8Array): void {
    const parts = leadingRows(slot, rows);
    const expected = parts.reduce((sum, { bytes }) => sum + bytes, 0);
    if (bytes.length !== expected) {
      throw new RangeError(`Cannot write ${bytes.length} bytes of state: expected ${expected}`);
    }
    let at = 0;
    for (const { buffer, offset, bytes: length } of parts) {
      const part = new Uint8Array(Math.ceil(length / 4) * 4);
      part.set(bytes.subarray(at, at + length));
      writeBytes(device, { buffer, offset }, part);
      at += length;
    }
  }

  return {
    bytesPerSlot: slotBytes.reduce((sum, bytes) => sum + bytes, 0),
    slotCount: count,
    slice(state) {
      const at = states.findIndex(({ id }) => id === state.id);
      const bytes = Math.max(4, slotBytes[at]! * count);
      return { buffer: buffers[at]!, offset: 0, bytes, access: "either" };
    },
    open(): number {
      const slot = pool.open();
      if (used[slot]) clear(slot);
      used[slot] = true;
      return slot;
    },
    close: pool.close,
    check: pool.check,
    markUsed: () => void used.fill(true),
    read,
    write,
  };

  function clear(slot: number): void {
    const encoder = device.createCommandEncoder();
    buffers.forEach((buffer, i) => {
      const bytes = slotBytes[i]!;
      if (bytes > 0) encoder.clearBuffer(buffer, slot * bytes, bytes);
    });
    device.queue.submit([encoder.finish()]);
  }
}

/** The range widened to whole words. */
function inWords({ buffer, offset, bytes }: Part): Part {
  const from = Math.floor(offset / 4) * 4;
  return { buffer, offset: from, bytes: Math.ceil((offset + bytes) / 4) * 4 - from };
}
