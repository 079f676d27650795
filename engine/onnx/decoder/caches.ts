// Keys and values of all sessions of a decoder. A graph takes its past as inputs, so the inputs' own memory is
// the cache of the session that ran last: a step writes its new rows there in place and copies nothing else
// (spec TL-12). Rows are moved apart only when a past outgrows the length that it is padded to. When another
// session runs, the rows of the one before are set aside in an array of its own.

import type { DataType, HostData } from "../../graph/graph.ts";
import { elementCount, hostArray } from "../../ops/host_tensor.ts";
import { createSlotPool } from "../../run/slots.ts";

/** One cache tensor: `outer` blocks of `rows × inner` elements. */
export interface CacheTensor {
  readonly dtype: DataType;
  readonly outer: number;
  readonly inner: number;
  /** The memory of the graph's input. */
  readonly data: HostData;
}

/** New rows of a cache as the graph gives them out. */
export interface NewRows {
  readonly data: HostData;
  /** Rows of a block of `data`. */
  readonly stride: number;
  /** Where the new ones begin. */
  readonly from: number;
}

/** Caches of all sessions. */
export interface Caches {
  readonly bytesPerSlot: number;
  open(): number;
  close(slot: number): void;
  /** Feeds the graph `length` rows of a slot; the rows of a block. */
  feed(slot: number, length: number): number;
  /** Appends `count` rows behind `length`, by tensor. */
  append(length: number, count: number, rows: (tensor: number) => NewRows): void;
  /** The first `count` rows of every tensor. */
  read(slot: number, count: number): Uint8Array;
  /** @throws {RangeError} If the bytes are not as many as `count` rows have. */
  write(slot: number, count: number, bytes: Uint8Array): void;
}

/** The slot whose rows lie in the inputs. */
interface Resident {
  slot: number;
  /** Rows that are its own. */
  length: number;
  /** Rows of a block. */
  held: number;
}

const NOBODY = -1;

/** Sizes of caches. */
export interface CacheSizes {
  /** Sessions. */
  readonly slots: number;
  /** Most rows of one. */
  readonly capacity: number;
  /** Rows of a block that is fed, for so many rows of a past. */
  heldFor(length: number): number;
}

/** Makes the caches of all sessions. */
export function createCaches(
  tensors: readonly CacheTensor[],
  { slots, capacity, heldFor }: CacheSizes,
): Caches {
  const pool = createSlotPool(slots);
  const asides = new Map<number, readonly HostData[]>();
  const resident: Resident = { slot: NOBODY, length: 0, held: 0 };
  const rowBytes = tensors.reduce(
    (sum, { outer, inner, data }) => sum + outer * inner * data.BYTES_PER_ELEMENT,
    0,
  );

  // Arrays of a slot that is not resident, as long as a session may become.
  function asideOf(slot: number): readonly HostData[] {
    const known = asides.get(slot) ??
      tensors.map(({ dtype, outer, inner }) =>
        hostArray(dtype, elementCount([outer, capacity, inner]))
      );
    asides.set(slot, known);
    return known;
  }

  function setAside(): void {
    const { slot, length, held } = resident;
    if (slot === NOBODY) return;
    const aside = asideOf(slot);
    tensors.forEach(({ outer, inner, data }, i) => {
      for (let block = 0; block < outer; block++) {
        const from = block * held * inner;
        copy(aside[i]!, block * capacity * inner, data, from, length * inner);
      }
    });
    resident.slot = NOBODY;
  }

  function takeBack(slot: number, length: number, held: number): void {
    setAside();
    const aside = asides.get(slot);
    tensors.forEach(({ outer, inner, data }, i) => {
      for (let block = 0; aside && block < outer; block++) {
        const to = block * held * inner;
        copy(data, to, aside[i]!, block * capacity * inner, length * inner);
      }
    });
    Object.assign(resident, { slot, length, held });
  }

  // Blocks move in the order in which none is overwritten before it was moved.
  function restride(length: number, held: number): void {
    const before = resident.held;
    for (const { outer, inner, data } of tensors) {
      for (let i = 0; i < outer; i++) {
        const block = held > before ? outer - 1 - i : i;
        const from = block * before * inner;
        data.copyWithin(block * held * inner, from, from + length * inner);
      }
    }
    resident.held = held;
  }

  return {
    bytesPerSlot: rowBytes * capacity,
    open() {
      const slot = pool.open();
      asides.delete(slot);
      return slot;
    },
    close(slot) {
      if (resident.slot === slot) resident.slot = NOBODY;
      asides.delete(slot);
      pool.close(slot);
    },
    feed(slot, length) {
      pool.check(slot);
      const held = heldFor(length);
      if (resident.slot !== slot) takeBack(slot, length, held);
      else if (resident.held !== held) restride(length, held);
      resident.length = length;
      return held;
    },
    append(length, count, rows) {
      if (length + count > resident.held) restride(length, heldFor(length + count));
      tensors.forEach(({ outer, inner, data }, i) => {
        const { data: source, stride, from } = rows(i);
        for (let block = 0; block < outer; block++) {
          const to = (block * resident.held + length) * inner;
          copy(data, to, source, (block * stride + from) * inner, count * inner);
        }
      });
      resident.length = length + count;
    },
    read(slot, count) {
      pool.check(slot);
      const bytes = new Uint8Array(rowBytes * count);
      const isResident = resident.slot === slot;
      const aside = isResident ? undefined : asideOf(slot);
      let at = 0;
      tensors.forEach(({ outer, inner, data }, i) => {
        const source = aside?.[i] ?? data, stride = isResident ? resident.held : capacity;
        for (let block = 0; block < outer; block++) {
          const from = block * stride * inner;
          const part = bytesOf(source, from, count * inner);
          bytes.set(part, at);
          at += part.length;
        }
      });
      return bytes;
    },
    write(slot, count, bytes) {
      pool.check(slot);
      if (bytes.length !== rowBytes * count) {
        throw new RangeError(
          `Cannot write ${bytes.length} bytes of state: expected ${rowBytes * count}`,
        );
      }
      if (resident.slot === slot) resident.slot = NOBODY;
      let at = 0;
      asideOf(slot).forEach((target, i) => {
        const { outer, inner } = tensors[i]!;
        for (let block = 0; block < outer; block++) {
          const part = bytesOf(target, block * capacity * inner, count * inner);
          part.set(bytes.subarray(at, at + part.length));
          at += part.length;
        }
      });
    },
  };
}

function copy(target: HostData, to: number, source: HostData, from: number, count: number): void {
  (target as Uint8Array).set(source.subarray(from, from + count) as Uint8Array, to);
}

function bytesOf({ buffer, byteOffset, BYTES_PER_ELEMENT }: HostData, from: number, count: number) {
  return new Uint8Array(
    buffer,
    byteOffset + from * BYTES_PER_ELEMENT,
    count * BYTES_PER_ELEMENT,
  );
}
