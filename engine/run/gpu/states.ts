// States on the GPU, in pages: kernels find the page of a slot's rows through the table of its group (page_tables.ts), so
// that rows of one step may belong to different sessions.

import type { GpuMemory } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import type { PageMemory } from "../backend.ts";
import { NO_PAGE, PAGE_ROWS, pageGroups, type StateSizes } from "../pages/groups.ts";
import { createSlotPool } from "../slots.ts";
import { bytesOfSlot, rowBytes, splitBytes, type States } from "../states.ts";
import { createStateStores, type Run, type RunsOf } from "./state_stores.ts";

/** The states of all slots. */
export interface GpuStates extends States {
  /** All pages of a state. */
  slice(state: Value): GpuSlice;
  /** By group, the page of each `PAGE_ROWS` rows of each slot. */
  readonly tables: readonly Int32Array[];
  /** Hears whether they have changed since they were last written, and writes them then. */
  written(write: (haveChanged: boolean) => void): void;
  /** Has somebody told of slots of which rows before one are others from now on. */
  watch(onLoss: (slot: number, end: number) => void): void;
  read(slot: number, count: number): Promise<Uint8Array>;
}

/**
 * Reserves the states.
 *
 * @throws {ResourceError} If one is over the limit of a binding.
 */
export function createGpuStates(
  gpu: GpuMemory,
  { graph, sizes }: { readonly graph: Graph; readonly sizes: StateSizes },
): GpuStates {
  const { slots, pages } = sizes, groups = pageGroups(graph);
  const stores = createStateStores(gpu, { graph, sizes });
  const tables = groups.map(({ pagesPerSlot }) =>
    Int32Array.from({ length: slots * pagesPerSlot }, (_, i) => pages ? NO_PAGE : i)
  );
  let isChanged = true;
  let onLoss: (slot: number, end: number) => void = () => {};
  const pool = createSlotPool(slots, (slot) => {
    if (!pages) stores.clear((group) => runsOf(group, { slot, rows: groups[group]!.capacity }));
  });

  /** Where so many leading rows of a slot are. */
  function runsOf(group: number, { slot, rows }: { slot: number; rows: number }): Run[] {
    const { pagesPerSlot } = groups[group]!, runs: Run[] = [];
    for (let from = 0, at = slot * pagesPerSlot; from < rows; from += PAGE_ROWS) {
      const page = tables[group]![at++]!, count = Math.min(PAGE_ROWS, rows - from);
      const last = runs.at(-1);
      const next = last && last.page !== NO_PAGE ? last.page + last.rows / PAGE_ROWS : NO_PAGE;
      if (last && page === next) runs.splice(-1, 1, { ...last, rows: last.rows + count });
      else runs.push({ page, rows: count });
    }
    return runs;
  }

  /** The same in all groups. */
  function leading(slot: number, rows: number): { runsOf: RunsOf; lengths: number[] } {
    pool.check(slot);
    const lengths = rowBytes(graph.states, rows);
    return { runsOf: (group) => runsOf(group, { slot, rows }), lengths };
  }

  return {
    ...pool,
    open() {
      const slot = pool.open();
      onLoss(slot, Infinity);
      return slot;
    },
    bytesPerSlot: bytesOfSlot(graph.states),
    bytes: stores.bytes,
    tables,
    written(write) {
      write(isChanged);
      isChanged = false;
    },
    watch: (listener) => void (onLoss = listener),
    ...pages && {
      pages: groups.map(({ pagesPerSlot }, group): PageMemory => ({
        map({ slot, index }, page) {
          const table = tables[group]!, at = slot * pagesPerSlot + index;
          if (table[at] === page) return;
          if (table[at] !== NO_PAGE) onLoss(slot, (index + 1) * PAGE_ROWS);
          table[at] = page;
          isChanged = true;
        },
        copy: (from, to) => stores.copy(group, from, to),
      })),
    },
    slice: stores.slice,
    read: async (slot, rows) => await stores.read(leading(slot, rows).runsOf),
    write(slot, rows, bytes) {
      const { runsOf, lengths } = leading(slot, rows);
      stores.write(runsOf, splitBytes(bytes, lengths));
      onLoss(slot, Infinity);
    },
  };
}
