// States of a graph as devices keep them: slots, whose rows lie in pages, and the leading rows of every state as bytes, in
// the order of the graph. That is what a session is saved as, so it is the same wherever the states lie.

import type { Graph, Value } from "../graph/graph.ts";
import { sizeOf } from "../plan/sizes.ts";
import type { PageMemory } from "./backend.ts";
import {
  NO_PAGE,
  PAGE_ROWS,
  pageBytes,
  type PageGroup,
  pageGroups,
  poolPages,
  type StateSizes,
} from "./pages/groups.ts";
import { createSlotPool, type SlotPool } from "./slots.ts";

/** The states of all slots. */
export interface States extends SlotPool {
  /** Bytes of a slot at its longest. */
  readonly bytesPerSlot: number;
  /** Bytes of all slots. */
  readonly bytes: number;
  /** Pages by group, if there are pools. */
  readonly pages?: readonly PageMemory[];
  /** The first `count` rows of every state of an open slot, in the graph's order. */
  read(slot: number, count: number): Promise<Uint8Array> | Uint8Array;
  /** Puts back what `read` gave. @throws {RangeError} If the length is another. */
  write(slot: number, count: number, bytes: Uint8Array): void;
}

/** States in pages of a memory that the host sees. */
export interface PagedStates extends States {
  read(slot: number, count: number): Uint8Array;
  readonly groups: readonly PageGroup[];
  /** By group, the page of each `PAGE_ROWS` rows of each slot. */
  readonly tables: readonly Int32Array[];
  /** The pages of an open slot's rows of a state, up to the last; undefined where there is none. */
  pagesOf(state: Value, slot: number): (Uint8Array | undefined)[];
}

/** What such a memory is asked for. */
export interface PageRoom {
  /** Room for the pages of a group. */
  table(entries: number): Int32Array;
  /** The bytes of a page of a state. */
  view(state: Value, page: number): Uint8Array;
}

/** Bytes of a slot at its longest. */
export function bytesOfSlot(states: readonly Value[]): number {
  return states.reduce((sum, state) => sum + sizeOf(state, {}).bytes, 0);
}

/** Keeps the tables of states in such a memory. Without pools, every slot has its own pages for good. */
export function createPagedStates(
  graph: Graph,
  { slots, pages }: StateSizes,
  { table, view }: PageRoom,
): PagedStates {
  const { states } = graph;
  const groups = pageGroups(graph), counts = poolPages(groups, { slots, pages });
  const tables = groups.map(({ pagesPerSlot }) => table(slots * pagesPerSlot));
  for (const own of tables) {
    if (pages) own.fill(NO_PAGE);
    else own.forEach((_, i) => own[i] = i);
  }
  const groupOf = new Map(
    groups.flatMap(({ states }, i) => states.map(({ id }) => [id, i] as const)),
  );
  const pool = createSlotPool(slots, (slot) => {
    if (pages) return;
    for (const state of states) for (const page of pagesOf(state, slot)) page!.fill(0);
  });

  function pagesOf(state: Value, slot: number): (Uint8Array | undefined)[] {
    const at = groupOf.get(state.id)!, { pagesPerSlot } = groups[at]!;
    const own = tables[at]!.subarray(slot * pagesPerSlot, (slot + 1) * pagesPerSlot);
    const count = 1 + own.findLastIndex((page) => page !== NO_PAGE);
    return Array.from(
      own.subarray(0, count),
      (page) => page === NO_PAGE ? undefined : view(state, page),
    );
  }

  /** Calls `move` with each page of so many leading rows, and where its bytes are in those of all states. */
  function eachPage(
    { slot, rows }: { readonly slot: number; readonly rows: number },
    move: (page: Uint8Array, from: number) => void,
  ): void {
    pool.check(slot);
    let start = 0;
    rowBytes(states, rows).forEach((bytes, i) => {
      const state = states[i]!, at = groupOf.get(state.id)!, size = pageBytes(state);
      for (let from = 0, index = slot * groups[at]!.pagesPerSlot; from < bytes; from += size) {
        const page = tables[at]![index++]!;
        if (page !== NO_PAGE) {
          move(view(state, page).subarray(0, Math.min(size, bytes - from)), start + from);
        }
      }
      start += bytes;
    });
  }

  return {
    ...pool,
    ...{ groups, tables, pagesOf },
    bytesPerSlot: bytesOfSlot(states),
    bytes: groups.reduce(
      (sum, { states }, i) =>
        sum + counts[i]! * states.reduce((bytes, state) => bytes + pageBytes(state), 0),
      0,
    ),
    ...pages && {
      pages: groups.map(({ states, pagesPerSlot }, i): PageMemory => ({
        map: ({ slot, index }, page) => void (tables[i]![slot * pagesPerSlot + index] = page),
        copy({ page, rows }, to) {
          for (const state of states) {
            const bytes = pageBytes(state) / PAGE_ROWS * rows;
            view(state, to).set(view(state, page).subarray(0, bytes));
          }
        },
      })),
    },
    read(slot, rows) {
      const bytes = new Uint8Array(rowBytes(states, rows).reduce((sum, own) => sum + own, 0));
      eachPage({ slot, rows }, (page, from) => bytes.set(page, from));
      return bytes;
    },
    write(slot, rows, bytes) {
      splitBytes(bytes, rowBytes(states, rows));
      eachPage({ slot, rows }, (page, from) => page.set(bytes.subarray(from, from + page.length)));
    },
  };
}

/**
 * Bytes of so many leading rows, by state.
 *
 * @throws {RangeError} If a state has fewer.
 */
export function rowBytes(states: readonly Value[], rows: number): number[] {
  return states.map((state) => {
    const capacity = state.shape[0] as number;
    if (!Number.isInteger(rows) || rows < 0 || rows > capacity) {
      throw new RangeError(`Cannot copy ${rows} rows of ${state.name}: it has ${capacity}`);
    }
    return capacity === 0 ? 0 : sizeOf(state, {}).bytes / capacity * rows;
  });
}

/**
 * Bytes cut into pieces of these lengths.
 *
 * @throws {RangeError} If they are more or fewer.
 */
export function splitBytes(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const expected = lengths.reduce((sum, length) => sum + length, 0);
  if (bytes.length !== expected) {
    throw new RangeError(`Cannot write ${bytes.length} bytes of state: expected ${expected}`);
  }
  let at = 0;
  return lengths.map((length) => bytes.subarray(at, at += length));
}
