// States in host memory: per slot one array for each state of the graph.

import type { Graph, HostData, Value } from "../graph/graph.ts";
import { elementCount, hostArray } from "../ops/host_tensor.ts";
import { sizeOf } from "../plan/sizes.ts";
import { createSlotPool } from "./slots.ts";

/** The states of all slots. */
export interface HostStates {
  readonly bytesPerSlot: number;
  /** Takes a slot and fills it with zeros. */
  open(): number;
  close(slot: number): void;
  /** Data of a state of the graph in an open slot. */
  data(state: Value, slot: number): HostData;
  /** The first `count` rows of every state, in the graph's order. */
  read(slot: number, count: number): Uint8Array;
  write(slot: number, count: number, bytes: Uint8Array): void;
}

/** Allocates the states of `count` slots. */
export function createHostStates({ states }: Graph, count: number): HostStates {
  const pool = createSlotPool(count);
  const slots = Array.from({ length: count }, () =>
    new Map(states.map((state) => {
      const shape = state.shape as readonly number[];
      // What has no element by element form is bytes.
      const length = state.dtype === "q8_0" ? sizeOf(state, {}).bytes : elementCount(shape);
      return [state.id, hostArray(state.dtype, length)];
    })));

  function data(state: Value, slot: number): HostData {
    pool.check(slot);
    return slots[slot]!.get(state.id)!;
  }

  function bytesOf(state: Value, slot: number): Uint8Array {
    const { buffer, byteLength } = data(state, slot);
    return new Uint8Array(buffer, 0, byteLength);
  }

  // The leading rows of each state.
  function leadingRows(slot: number, rows: number): Uint8Array[] {
    return states.map((state) => {
      const capacity = state.shape[0] as number;
      if (!Number.isInteger(rows) || rows < 0 || rows > capacity) {
        throw new RangeError(`Cannot copy ${rows} rows of ${state.name}: it has ${capacity}`);
      }
      const bytes = bytesOf(state, slot);
      return bytes.subarray(0, capacity === 0 ? 0 : bytes.length / capacity * rows);
    });
  }

  return {
    bytesPerSlot: [...slots[0]?.values() ?? []].reduce(
      (sum, { byteLength }) => sum + byteLength,
      0,
    ),
    open() {
      const slot = pool.open();
      for (const state of states) bytesOf(state, slot).fill(0);
      return slot;
    },
    close: pool.close,
    data,
    read(slot, rows) {
      const parts = leadingRows(slot, rows);
      const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
      let at = 0;
      for (const part of parts) {
        bytes.set(part, at);
        at += part.length;
      }
      return bytes;
    },
    write(slot, rows, bytes) {
      const parts = leadingRows(slot, rows);
      const expected = parts.reduce((sum, { length }) => sum + length, 0);
      if (bytes.length !== expected) {
        throw new RangeError(`Cannot write ${bytes.length} bytes of state: expected ${expected}`);
      }
      let at = 0;
      for (const part of parts) {
        part.set(bytes.subarray(at, at + part.length));
        at += part.length;
      }
    },
  };
}
