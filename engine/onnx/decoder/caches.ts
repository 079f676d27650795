// Keys and values of all sessions of a decoder. A graph takes its past as inputs, so the inputs' own memory is
// the cache of the session that ran last: a step writes its new rows there in place and copies nothing else
// (spec TL-12). Rows are moved apart only when a past outgrows the length that it is padded to. When another
// session runs, the rows of the one before are set aside in an array of its own.

import type { DataType, HostData } from "../../graph/graph.ts";
import { elementCount, hostArray } from "../../ops/host_tensor.ts";
import { createSlotPool, type SlotPool } from "../../run/slots.ts";

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

/** Sizes of caches. */
export interface CacheSizes {
  /** Sessions. */
  readonly slots: number;
  /** Most rows of one. */
  readonly capacity: number;
  /** Rows of a block that is fed, for so many rows of a past. */
  heldFor(length: number): number;
}

const NOBODY = -1;

/** Caches of all sessions. */
export class Caches {
  /** Bytes of a session's rows, at most. */
  readonly bytesPerSlot: number;
  readonly #tensors: readonly CacheTensor[];
  readonly #sizes: CacheSizes;
  readonly #pool: SlotPool;
  readonly #rowBytes: number;
  /** Arrays of slots that are not resident, as long as a session may become. */
  readonly #asides = new Map<number, readonly HostData[]>();
  /** The slot whose rows lie in the inputs, how many are its own, and how many a block has. */
  readonly #resident = { slot: NOBODY, length: 0, held: 0 };

  constructor(tensors: readonly CacheTensor[], sizes: CacheSizes) {
    this.#tensors = tensors;
    this.#sizes = sizes;
    this.#pool = createSlotPool(sizes.slots);
    this.#rowBytes = tensors.reduce(
      (sum, { outer, inner, data }) => sum + outer * inner * data.BYTES_PER_ELEMENT,
      0,
    );
    this.bytesPerSlot = this.#rowBytes * sizes.capacity;
  }

  open(): number {
    const slot = this.#pool.open();
    this.#asides.delete(slot);
    return slot;
  }

  close(slot: number): void {
    if (this.#resident.slot === slot) this.#resident.slot = NOBODY;
    this.#asides.delete(slot);
    this.#pool.close(slot);
  }

  /** Feeds the graph `length` rows of a slot; the rows of a block. */
  feed(slot: number, length: number): number {
    this.#pool.check(slot);
    const held = this.#sizes.heldFor(length);
    if (this.#resident.slot !== slot) this.#takeBack(slot, length, held);
    else if (this.#resident.held !== held) this.#restride(length, held);
    this.#resident.length = length;
    return held;
  }

  /** Appends `count` rows behind `length`, by tensor. */
  append(length: number, count: number, rows: (tensor: number) => NewRows): void {
    if (length + count > this.#resident.held) {
      this.#restride(length, this.#sizes.heldFor(length + count));
    }
    this.#tensors.forEach(({ outer, inner, data }, i) => {
      const { data: source, stride, from } = rows(i);
      for (let block = 0; block < outer; block++) {
        const to = (block * this.#resident.held + length) * inner;
        copy(data, { to, source, from: (block * stride + from) * inner, count: count * inner });
      }
    });
    this.#resident.length = length + count;
  }

  /** The first `count` rows of every tensor. */
  read(slot: number, count: number): Uint8Array {
    this.#pool.check(slot);
    const bytes = new Uint8Array(this.#rowBytes * count);
    const isResident = this.#resident.slot === slot;
    const sources = isResident ? this.#tensors.map(({ data }) => data) : this.#asideOf(slot);
    let at = 0;
    for (const part of this.#blocks(sources, count, isResident ? this.#resident.held : undefined)) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }

  /** @throws {RangeError} If the bytes are not as many as `count` rows have. */
  write(slot: number, count: number, bytes: Uint8Array): void {
    this.#pool.check(slot);
    const expected = this.#rowBytes * count;
    if (bytes.length !== expected) {
      throw new RangeError(`Cannot write ${bytes.length} bytes of state: expected ${expected}`);
    }
    if (this.#resident.slot === slot) this.#resident.slot = NOBODY;
    let at = 0;
    for (const part of this.#blocks(this.#asideOf(slot), count)) {
      part.set(bytes.subarray(at, at + part.length));
      at += part.length;
    }
  }

  /** The bytes of the leading rows of every block. */
  *#blocks(
    sources: readonly HostData[],
    count: number,
    stride: number = this.#sizes.capacity,
  ): Generator<Uint8Array> {
    for (const [i, { outer, inner }] of this.#tensors.entries()) {
      const { buffer, byteOffset, BYTES_PER_ELEMENT: bytes } = sources[i]!;
      for (let block = 0; block < outer; block++) {
        const from = byteOffset + block * stride * inner * bytes;
        yield new Uint8Array(buffer, from, count * inner * bytes);
      }
    }
  }

  #asideOf(slot: number): readonly HostData[] {
    const { capacity } = this.#sizes;
    const known = this.#asides.get(slot) ??
      this.#tensors.map(({ dtype, outer, inner }) =>
        hostArray(dtype, { count: elementCount([outer, capacity, inner]) })
      );
    this.#asides.set(slot, known);
    return known;
  }

  #setAside(): void {
    const { slot, length, held } = this.#resident;
    if (slot === NOBODY) return;
    const aside = this.#asideOf(slot);
    this.#eachBlock((tensor, block, { inner, data }) => {
      const to = block * this.#sizes.capacity * inner;
      copy(aside[tensor]!, { to, source: data, from: block * held * inner, count: length * inner });
    });
    this.#resident.slot = NOBODY;
  }

  #takeBack(slot: number, length: number, held: number): void {
    this.#setAside();
    const aside = this.#asides.get(slot);
    this.#eachBlock((tensor, block, { inner, data }) => {
      const from = block * this.#sizes.capacity * inner;
      if (aside) {
        copy(data, {
          to: block * held * inner,
          source: aside[tensor]!,
          from,
          count: length * inner,
        });
      }
    });
    Object.assign(this.#resident, { slot, length, held });
  }

  #eachBlock(use: (tensor: number, block: number, record: CacheTensor) => void): void {
    this.#tensors.forEach((record, tensor) => {
      for (let block = 0; block < record.outer; block++) use(tensor, block, record);
    });
  }

  // Blocks move in the order in which none is overwritten before it was moved.
  #restride(length: number, held: number): void {
    const before = this.#resident.held;
    for (const { outer, inner, data } of this.#tensors) {
      for (let i = 0; i < outer; i++) {
        const block = held > before ? outer - 1 - i : i;
        const from = block * before * inner;
        data.copyWithin(block * held * inner, from, from + length * inner);
      }
    }
    this.#resident.held = held;
  }
}

function copy(
  target: HostData,
  { to, source, from, count }: {
    readonly to: number;
    readonly source: HostData;
    readonly from: number;
    readonly count: number;
  },
): void {
  (target as Uint8Array).set(source.subarray(from, from + count) as Uint8Array, to);
}
