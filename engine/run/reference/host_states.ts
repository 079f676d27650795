// States in host memory: per slot one array for each state of the graph.

import type { Graph, HostData, Value } from "../../graph/graph.ts";
import { elementCount, hostArray } from "../../ops/host_tensor.ts";
import { sizeOf } from "../../plan/sizes.ts";
import { createSlotPool } from "../slots.ts";
import { type States, viewedStates } from "../states.ts";

/** The states of all slots. */
export interface HostStates extends States {
  /** Data of a state of the graph in an open slot. */
  data(state: Value, slot: number): HostData;
}

/** Allocates the states of `count` slots. */
export function createHostStates({ states }: Graph, count: number): HostStates {
  const pool = createSlotPool(count, (slot) => {
    for (const { buffer } of slots[slot]!.values()) new Uint8Array(buffer).fill(0);
  });
  const slots = Array.from({ length: count }, () =>
    new Map(states.map((state) => {
      const shape = state.shape as readonly number[];
      // What has no element by element form is bytes.
      const length = state.dtype === "q8_0" ? sizeOf(state, {}).bytes : elementCount(shape);
      return [state.id, hostArray(state.dtype, { count: length })];
    })));

  function data(state: Value, slot: number): HostData {
    pool.check(slot);
    return slots[slot]!.get(state.id)!;
  }

  return {
    ...pool,
    ...viewedStates(
      states,
      { pool, view: (state, slot, bytes) => new Uint8Array(data(state, slot).buffer, 0, bytes) },
    ),
    bytesPerSlot: states.reduce((sum, state) => sum + sizeOf(state, {}).bytes, 0),
    data,
  };
}
