// States in host memory. References look at all rows of a slot as one array, so its pages are joined for a node, and
// put back when it has run.

import type { Graph, HostData, Value } from "../../graph/graph.ts";
import { hostArray, hostElementBytes } from "../../ops/host_tensor.ts";
import { PAGE_ROWS, pageBytes, stateBytes, type StateSizes } from "../pages/groups.ts";
import { createPagedStates, type PagedStates } from "../states.ts";

/** The states of all slots. */
export interface HostStates extends PagedStates {
  /** The rows of a state in an open slot, joined. */
  data(state: Value, slot: number): HostData;
  /** Puts them back. */
  store(state: Value, slot: number, data: HostData): void;
}

/** Allocates the states of all slots. */
export function createHostStates(graph: Graph, sizes: StateSizes): HostStates {
  const bytes = stateBytes(graph, sizes);
  const memory = new Map([...bytes].map(([id, size]) => [id, new Uint8Array(size)]));
  const states = createPagedStates(graph, sizes, {
    table: (entries) => new Int32Array(entries),
    view: (state, page) => {
      const size = pageBytes(state);
      return memory.get(state.id)!.subarray(page * size, (page + 1) * size);
    },
  });
  return {
    ...states,
    data(state, slot) {
      states.check(slot);
      const pages = states.pagesOf(state, slot), size = pageBytes(state);
      const rows = Math.min(state.shape[0] as number, pages.length * PAGE_ROWS);
      // What has no element by element form is bytes.
      const element = state.dtype === "q8_0" ? 1 : hostElementBytes(state.dtype);
      const data = hostArray(state.dtype, { count: rows * size / PAGE_ROWS / element });
      const joined = new Uint8Array(data.buffer);
      pages.forEach((page, i) =>
        page && joined.set(page.subarray(0, joined.length - i * size), i * size)
      );
      return data;
    },
    store(state, slot, { buffer }) {
      const size = pageBytes(state), joined = new Uint8Array(buffer);
      states.pagesOf(state, slot).forEach((page, i) =>
        page?.set(joined.subarray(i * size, (i + 1) * size))
      );
    },
  };
}
