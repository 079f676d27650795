// States in WASM memory: one block a slot, the states one after another in it. Kernels find a block
// through a table of addresses, so that rows of one step may belong to different sessions.

import type { Machine } from "../../../wasm/machine.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { createSlotPool } from "../slots.ts";
import { sizeOf } from "../../plan/sizes.ts";

/** The states of all slots. */
export interface WasmStates {
  readonly bytesPerSlot: number;
  readonly slotCount: number;
  /** Address of the table of block addresses, u32 each. */
  readonly table: number;
  /** Offset of a state in a block. */
  offsetOf(state: Value): number;
  /** Takes a slot; its states are zero. */
  open(): number;
  close(slot: number): void;
  /** @throws {RangeError} If the slot is not open. */
  check(slot: number): void;
  /** The first `count` rows of every state, in the graph's order. */
  read(slot: number, count: number): Uint8Array;
  write(slot: number, count: number, bytes: Uint8Array): void;
}

const ALIGNMENT = 64;

/** Reserves the states of `count` slots in memory that nothing has used before, so that it is zero. */
export function createWasmStates(machine: Machine, { states }: Graph, count: number): WasmStates {
  const pool = createSlotPool(count);
  const offsets = new Map<number, number>();
  const rowBytes = states.map((state) => {
    const capacity = state.shape[0] as number;
    return capacity === 0 ? 0 : sizeOf(state, {}).bytes / capacity;
  });
  let bytesPerSlot = 0;
  states.forEach((state) => {
    offsets.set(state.id, bytesPerSlot);
    bytesPerSlot += Math.ceil(sizeOf(state, {}).bytes / ALIGNMENT) * ALIGNMENT;
  });
  const table = machine.allocate(4 * count);
  const blocks = Array.from({ length: count }, () => machine.allocate(bytesPerSlot));
  machine.u32(table, count).set(blocks);
  const used = new Array<boolean>(count).fill(false);

  function leadingRows(slot: number, rows: number): Uint8Array[] {
    pool.check(slot);
    return states.map((state, i) => {
      const capacity = state.shape[0] as number;
      if (!Number.isInteger(rows) || rows < 0 || rows > capacity) {
        throw new RangeError(`Cannot copy ${rows} rows of ${state.name}: it has ${capacity}`);
      }
      return machine.u8(blocks[slot]! + offsets.get(state.id)!, rows * rowBytes[i]!);
    });
  }

  function write(slot: number, rows: number, bytes: Uint8Array): void {
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
  }

  return {
    bytesPerSlot,
    slotCount: count,
    table,
    offsetOf: (state) => offsets.get(state.id)!,
    open(): number {
      const slot = pool.open();
      if (used[slot]) machine.u8(blocks[slot]!, bytesPerSlot).fill(0);
      used[slot] = true;
      return slot;
    },
    close: pool.close,
    check: pool.check,
    read(slot, rows): Uint8Array {
      const parts = leadingRows(slot, rows);
      const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
      let at = 0;
      for (const part of parts) {
        bytes.set(part, at);
        at += part.length;
      }
      return bytes;
    },
    write,
  };
}
