// States of a graph as devices keep them: slots, and the leading rows of every state as bytes, in the order of the
// graph. That is what a session is saved as, so it is the same wherever the states lie.

import type { Value } from "../graph/graph.ts";
import { sizeOf } from "../plan/sizes.ts";
import type { SlotPool } from "./slots.ts";

/** The states of all slots. */
export interface States extends SlotPool {
  readonly bytesPerSlot: number;
  /** The first `count` rows of every state of an open slot, in the graph's order. */
  read(slot: number, count: number): Promise<Uint8Array> | Uint8Array;
  /** Puts back what `read` gave. @throws {RangeError} If the length is another. */
  write(slot: number, count: number, bytes: Uint8Array): void;
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

/** Pieces one behind the other. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
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

/** Reading and writing of states that lie in memory which the host sees: `view` gives the leading bytes of one. */
export function viewedStates(
  states: readonly Value[],
  { pool: { check }, view }: {
    readonly pool: SlotPool;
    readonly view: (state: Value, slot: number, bytes: number) => Uint8Array;
  },
): { read(slot: number, count: number): Uint8Array } & Pick<States, "write"> {
  const leadingRows = (slot: number, rows: number) => {
    check(slot);
    return rowBytes(states, rows).map((bytes, i) => view(states[i]!, slot, bytes));
  };
  return {
    read: (slot, rows) => joinBytes(leadingRows(slot, rows)),
    write(slot, rows, bytes) {
      const targets = leadingRows(slot, rows);
      splitBytes(bytes, targets.map(({ length }) => length))
        .forEach((piece, i) => targets[i]!.set(piece));
    },
  };
}
