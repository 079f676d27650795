// States in WASM memory: one block a slot, the states one after another in it. Kernels find a block
// through a table of addresses, so that rows of one step may belong to different sessions.

import type { Machine } from "../../../wasm/machine.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { createSlotPool } from "../slots.ts";
import { type States, viewedStates } from "../states.ts";
import { sizeOf } from "../../plan/sizes.ts";

/** The states of all slots. */
export interface WasmStates extends States {
  /** Address of the table of block addresses, u32 each. */
  readonly table: number;
  /** Offset of a state in a block. */
  offsetOf(state: Value): number;
}

const ALIGNMENT = 64;

/** Reserves the states of `count` slots in memory that nothing has used before, so that it is zero. */
export function createWasmStates(
  machine: Machine,
  { graph: { states }, count }: { readonly graph: Graph; readonly count: number },
): WasmStates {
  const pool = createSlotPool(count, (slot) => machine.u8(blocks[slot]!, bytesPerSlot).fill(0));
  const offsets = new Map<number, number>();
  let bytesPerSlot = 0;
  for (const state of states) {
    offsets.set(state.id, bytesPerSlot);
    bytesPerSlot += Math.ceil(sizeOf(state, {}).bytes / ALIGNMENT) * ALIGNMENT;
  }
  const table = machine.allocate(4 * count);
  const blocks = Array.from({ length: count }, () => machine.allocate(bytesPerSlot));
  machine.u32(table, count).set(blocks);
  return {
    ...pool,
    ...viewedStates(
      states,
      { pool, view: ({ id }, slot, bytes) => machine.u8(blocks[slot]! + offsets.get(id)!, bytes) },
    ),
    bytesPerSlot,
    table,
    offsetOf: ({ id }) => offsets.get(id)!,
  };
}
