// States on the GPU: a buffer each, with all slots one behind the other, so that a row finds its slot by
// multiplication and rows of one step may belong to different sessions.

import { type GpuMemory, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import { readOnce } from "../../../gpu/readback.ts";
import { writeBytes } from "../../../gpu/write.ts";
import { ResourceError, UnsupportedError } from "../../errors.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { sizeOf } from "../../plan/sizes.ts";
import { inWords } from "./outputs.ts";
import { createSlotPool } from "../slots.ts";
import { bytesOfSlot, joinBytes, rowBytes, splitBytes, type States } from "../states.ts";

/** The states of all slots. */
export interface GpuStates extends States {
  /** All slots of a state. */
  slice(state: Value): GpuSlice;
  read(slot: number, count: number): Promise<Uint8Array>;
}

/**
 * Reserves the states of `count` slots; fresh buffers are zero.
 *
 * @throws {ResourceError} If the slots of one state are over the limit of a binding.
 */
export function createGpuStates(
  gpu: GpuMemory,
  { graph: { states }, count }: { readonly graph: Graph; readonly count: number },
): GpuStates {
  const { device, capabilities: { maxBindingBytes } } = gpu;
  const pool = createSlotPool(count, clear);
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

  async function read(slot: number, rows: number): Promise<Uint8Array> {
    pool.check(slot);
    const lengths = rowBytes(states, rows), words = lengths.map(inWords);
    const bytes = await readOnce(
      gpu,
      words.map((bytes, i) => ({ buffer: buffers[i]!, offset: slot * slotBytes[i]!, bytes })),
    );
    return joinBytes(splitBytes(bytes, words).map((piece, i) => piece.subarray(0, lengths[i])));
  }

  function write(slot: number, rows: number, bytes: Uint8Array): void {
    pool.check(slot);
    splitBytes(bytes, rowBytes(states, rows)).forEach((piece, i) => {
      const part = new Uint8Array(inWords(piece.length));
      part.set(piece);
      writeBytes(device, {
        target: { buffer: buffers[i]!, offset: slot * slotBytes[i]! },
        data: part,
      });
    });
  }

  const bytesPerSlot = bytesOfSlot(states);
  return {
    ...pool,
    ...{ bytesPerSlot, bytes: count * bytesPerSlot },
    slice(state) {
      const at = states.findIndex(({ id }) => id === state.id);
      const bytes = Math.max(4, slotBytes[at]! * count);
      return { buffer: buffers[at]!, offset: 0, bytes, access: "either" };
    },
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
