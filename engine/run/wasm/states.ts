// States in WASM memory: the pages of a state lie one behind the other, those of a group have the same numbers, and
// kernels find the number through the group's table. So rows of one step may belong to different sessions, rows of a page
// are one stretch of memory, and pages that follow each other are one, too.

import type { Machine } from "../../../wasm/machine.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { pageBytes, stateBytes, type StateSizes } from "../pages/groups.ts";
import { createPagedStates, type PagedStates } from "../states.ts";

/** Where kernels find the rows of a state. */
export interface StatePlace {
  /** Of its first page. */
  readonly address: number;
  /** Of the table of page numbers, i32 each. */
  readonly table: number;
}

/** The states of all slots. */
export interface WasmStates extends PagedStates {
  placeOf(state: Value): StatePlace;
}

/** Reserves states in memory that is zero: nothing has used it before, or it is filled. */
export function createWasmStates(
  machine: Machine,
  { graph, sizes, isUsed = false }: {
    readonly graph: Graph;
    readonly sizes: StateSizes;
    /** Whether others have used the memory. */
    readonly isUsed?: boolean | undefined;
  },
): WasmStates {
  const addresses = new Map(
    [...stateBytes(graph, sizes)].map(([id, bytes]) => {
      const address = machine.allocate(bytes);
      if (isUsed) machine.u8(address, bytes).fill(0);
      return [id, address] as const;
    }),
  );
  const tables: number[] = [];
  const states = createPagedStates(graph, sizes, {
    table(entries) {
      const address = machine.allocate(4 * entries);
      tables.push(address);
      return machine.i32(address, entries);
    },
    view(state, page) {
      const size = pageBytes(state);
      return machine.u8(addresses.get(state.id)! + page * size, size);
    },
  });
  const places = new Map(
    states.groups.flatMap(({ states }, i) =>
      states.map(({ id }) => [id, { address: addresses.get(id)!, table: tables[i]! }] as const)
    ),
  );
  return { ...states, placeOf: ({ id }) => places.get(id)! };
}
