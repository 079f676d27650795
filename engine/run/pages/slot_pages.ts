// The tables of slots: in which pages the rows of each lie, by group. What changes a table says so to the device; what
// does not, a step within its page for one, touches nothing and makes nothing.

import type { PageMemory } from "../backend.ts";
import { NO_PAGE, PAGE_ROWS, type PageGroup, REWIND_ROWS } from "./groups.ts";
import type { KeyedTokens } from "./cache_rows.ts";
import type { KeptTexts, KnownText } from "./kept_texts.ts";
import type { PagePool } from "./page_pool.ts";

/** A group of states on a device. */
export interface GroupPages {
  readonly group: PageGroup;
  readonly pool: PagePool;
  readonly memory: PageMemory;
}

/** Rows [from, to) of a slot. */
export interface RowRange {
  readonly from: number;
  readonly to: number;
}

/** Fewer rows than this are computed with those behind them at no cost worth a table and a copy. */
const LEAST_ADOPTED = 16;

/** Slots of groups whose rows come together. */
export class SlotPages {
  readonly #groups: readonly GroupPages[];
  readonly #kept: KeptTexts;
  /** Most rows of a step. */
  readonly #stepRows: number;
  readonly #tables: readonly Int32Array[];
  /** By slot: rows that it has, and those that may be written as things are. */
  readonly #lengths: Int32Array;
  readonly #from: Int32Array;
  readonly #to: Int32Array;
  readonly capacity: number;

  constructor(
    groups: readonly GroupPages[],
    { kept, slots, stepRows }: {
      readonly kept: KeptTexts;
      readonly slots: number;
      readonly stepRows: number;
    },
  ) {
    this.#groups = groups;
    this.#kept = kept;
    this.#stepRows = stepRows;
    this.#tables = groups.map(({ group }) =>
      new Int32Array(slots * group.pagesPerSlot).fill(NO_PAGE)
    );
    this.#lengths = new Int32Array(slots);
    this.#from = new Int32Array(slots);
    this.#to = new Int32Array(slots);
    this.capacity = Math.min(...groups.map(({ group }) => group.capacity));
  }

  /**
   * Makes rows of a slot writable that a step is about to write, and those before them that it does not have, which the
   * step sees; false if there is no room.
   */
  use(slot: number, { from, to }: RowRange): boolean {
    const isReady = from >= this.#from[slot]! && to <= this.#to[slot]!;
    if (!isReady) {
      const length = this.#lengths[slot]!;
      const ranges = this.#groups.map(({ group }) => ({
        from: Math.min(from, Math.max(length, firstKept(group, from))),
        to,
      }));
      if (!this.#makeWritable(slot, ranges)) return false;
    }
    if (to > this.#lengths[slot]!) this.#lengths[slot] = to;
    return true;
  }

  /** Makes rows behind those of a slot writable, of a sliding window those of one step; false if there is no room. */
  reserve(slot: number, length: number): boolean {
    const from = this.#lengths[slot]!;
    if (length <= from || from >= this.#from[slot]! && length <= this.#to[slot]!) return true;
    return this.#makeWritable(
      slot,
      this.#groups.map(({ group: { window } }) => ({
        from,
        to: window ? Math.min(length, from + this.#stepRows) : length,
      })),
    );
  }

  /** Gives a slot pages of its own for rows that will be written from outside; false if there is no room. */
  restore(slot: number, length: number): boolean {
    this.truncate(slot, 0);
    const ranges = this.#groups.map(({ group }) => ({
      from: firstKept(group, length),
      to: length,
    }));
    if (length > 0 && !this.#makeWritable(slot, ranges)) return false;
    this.#lengths[slot] = length;
    return true;
  }

  /** Forgets rows; gives how many are left. */
  truncate(slot: number, length: number): number {
    const left = Math.min(length, this.#lengths[slot]!), end = Math.ceil(left / PAGE_ROWS);
    for (const [g, { group: { pagesPerSlot } }] of this.#groups.entries()) {
      for (let index = end; index < pagesPerSlot; index++) this.#place(g, { slot, index }, NO_PAGE);
    }
    this.#lengths[slot] = left;
    this.#to[slot] = Math.min(this.#to[slot]!, end * PAGE_ROWS);
    return left === 0 || this.#sees(slot, left) ? left : this.truncate(slot, 0);
  }

  /** @throws {RangeError} If a sliding window has left rows of which the last would be seen. */
  fork({ slot, length }: { readonly slot: number; readonly length: number }, to: number): void {
    if (length > this.#lengths[slot]! || !this.#sees(slot, length)) {
      throw new RangeError(`Cannot fork ${length} rows of slot ${slot}: it does not have them`);
    }
    this.truncate(to, 0);
    for (const [g, { pool }] of this.#groups.entries()) {
      for (let index = 0; index * PAGE_ROWS < length; index++) {
        const page = this.#pageAt(g, { slot, index });
        if (page !== NO_PAGE) this.#place(g, { slot: to, index }, pool.hold(page));
      }
    }
    this.#lengths[to] = length;
    this.#share(slot);
    this.#share(to);
  }

  /** Takes over rows of a known text; gives how many the slot has then, or 0 if it took none. */
  adopt(slot: number, { whole, part }: KnownText): number {
    const own = this.#lengths[slot]!, first = Math.floor(own / PAGE_ROWS);
    const most = this.#longest({ whole, part });
    if (most < own + LEAST_ADOPTED) return 0;
    const shared = whole.slice(first, Math.floor(most / PAGE_ROWS));
    // Held before anything is given up to make room for the copy.
    const pages = this.#groups.map(({ pool }, g) =>
      shared.map(({ pages }) => pages[g] === NO_PAGE ? NO_PAGE : pool.hold(pages[g]!))
    );
    const copies = most % PAGE_ROWS > 0 ? this.#copyPart(part!) : undefined;
    copies?.forEach((copy, g) => pages[g]!.push(copy));
    const length = copies ? most : most - most % PAGE_ROWS;
    for (const [g, own] of pages.entries()) {
      own.forEach((page, i) => this.#place(g, { slot, index: first + i }, page));
    }
    if (length <= own) return 0;
    this.#lengths[slot] = length;
    this.#leaveBehind(slot, length);
    this.#share(slot);
    return length;
  }

  /** Keeps the pages that a text fills, or all that have some of it. */
  note(
    slot: number,
    { tokens, key, isWhole = false }: KeyedTokens & { readonly isWhole?: boolean },
  ): void {
    this.#kept.keep(tokens, {
      key,
      isWhole,
      pageOf: (g, index) => this.#pageAt(g, { slot, index }),
    });
    // Pages that are kept are not written any more.
    const whole = tokens.length - tokens.length % PAGE_ROWS;
    this.#from[slot] = Math.max(this.#from[slot]!, whole);
    if (isWhole) this.#share(slot);
  }

  /** Rows that others hold or keep, too, are copied before they are written. */
  #share(slot: number): void {
    this.#from[slot] = this.#to[slot] = 0;
  }

  #makeWritable(slot: number, ranges: readonly RowRange[]): boolean {
    this.#leaveBehind(slot, Math.min(...ranges.map(({ from }) => from)));
    let needs = this.#needs(slot, ranges);
    if (!needs) {
      // What is kept of this slot's own text needs no copy if it is given up.
      this.#forget(slot, ranges);
      needs = this.#needs(slot, ranges);
      if (!needs) return false;
    }
    for (const [g, indices] of needs.entries()) {
      const { pool, memory } = this.#groups[g]!;
      while (pool.free < indices.length) this.#kept.giveUp(g, indices.length - pool.free);
      for (const index of indices) {
        const page = this.#pageAt(g, { slot, index });
        const next = pool.take(index > 0 ? this.#pageAt(g, { slot, index: index - 1 }) : NO_PAGE);
        const rows = Math.min(PAGE_ROWS, this.#lengths[slot]! - index * PAGE_ROWS);
        if (page !== NO_PAGE && rows > 0) memory.copy({ page, rows }, next);
        this.#place(g, { slot, index }, next);
      }
    }
    this.#from[slot] = Math.max(...ranges.map(({ from }) => from - from % PAGE_ROWS));
    this.#to[slot] = Math.min(...ranges.map(({ to }) => Math.ceil(to / PAGE_ROWS) * PAGE_ROWS));
    return true;
  }

  /** Indices of pages that such rows of a slot take, by group; undefined if there is no room for them. */
  #needs(slot: number, ranges: readonly RowRange[]): number[][] | undefined {
    const needs = ranges.map((range, g) => this.#missing(g, { slot, ...range }));
    const isFull = needs.some(({ length }, g) => {
      const { free } = this.#groups[g]!.pool;
      return length > free && length > free + this.#kept.spare(g);
    });
    return isFull ? undefined : needs;
  }

  /** Gives up what is kept of such rows. */
  #forget(slot: number, ranges: readonly RowRange[]): void {
    for (const [g, range] of ranges.entries()) {
      for (const index of this.#missing(g, { slot, ...range })) {
        const page = this.#pageAt(g, { slot, index });
        if (page !== NO_PAGE) this.#kept.forget(g, page);
      }
    }
  }

  #pageAt(g: number, { slot, index }: { readonly slot: number; readonly index: number }): number {
    return this.#tables[g]![slot * this.#groups[g]!.group.pagesPerSlot + index]!;
  }

  /** Indices of pages with such rows that the slot has not for itself. */
  #missing(g: number, { slot, from, to }: RowRange & { readonly slot: number }): number[] {
    const { pool } = this.#groups[g]!;
    const indices: number[] = [];
    for (let index = Math.floor(from / PAGE_ROWS); index * PAGE_ROWS < to; index++) {
      const page = this.#pageAt(g, { slot, index });
      if (page === NO_PAGE || pool.holders(page) > 1) indices.push(index);
    }
    return indices;
  }

  /** Gives back the pages of which no row from one on sees any. */
  #leaveBehind(slot: number, from: number): void {
    for (const [g, { group }] of this.#groups.entries()) {
      const end = Math.floor(firstKept(group, from) / PAGE_ROWS);
      for (let index = 0; index < end; index++) this.#place(g, { slot, index }, NO_PAGE);
    }
  }

  /** Whether all rows are there that a row at `length` sees. */
  #sees(slot: number, length: number): boolean {
    return this.#groups.every(({ group }, g) => {
      let index = Math.floor(firstSeen(group, length) / PAGE_ROWS);
      while (index * PAGE_ROWS < length) {
        if (this.#pageAt(g, { slot, index: index++ }) === NO_PAGE) return false;
      }
      return true;
    });
  }

  /** The longest beginning of a text of which all rows are there that those behind it see. */
  #longest({ whole, part }: KnownText): number {
    const pages = part ? [...whole, part] : whole;
    let length = whole.length * PAGE_ROWS + (part?.rows ?? 0);
    for (; length > 0; length = Math.ceil(length / PAGE_ROWS) * PAGE_ROWS - PAGE_ROWS) {
      const isThere = this.#groups.every(({ group }, g) =>
        pages.slice(Math.floor(firstSeen(group, length) / PAGE_ROWS), Math.ceil(length / PAGE_ROWS))
          .every((kept) => kept.pages[g] !== NO_PAGE)
      );
      if (isThere) return length;
    }
    return 0;
  }

  /** Copies of the leading rows of a page, by group; undefined if there is no room. */
  #copyPart({ pages, rows }: NonNullable<KnownText["part"]>): number[] | undefined {
    // Nothing of it is given up meanwhile.
    this.#groups.forEach(({ pool }, g) => pool.hold(pages[g]!));
    const copies: number[] = [];
    for (const [g, { pool, memory }] of this.#groups.entries()) {
      if (pool.free === 0 && !this.#kept.giveUp(g)) break;
      copies.push(pool.take(NO_PAGE));
      memory.copy({ page: pages[g]!, rows }, copies[g]!);
    }
    this.#groups.forEach(({ pool }, g) => pool.release(pages[g]!));
    if (copies.length === this.#groups.length) return copies;
    copies.forEach((page, g) => this.#groups[g]!.pool.release(page));
    return undefined;
  }

  /** Puts a page that is held for it into the table. */
  #place(g: number, at: { readonly slot: number; readonly index: number }, page: number): void {
    const { pool, memory, group: { pagesPerSlot } } = this.#groups[g]!;
    const table = this.#tables[g]!,
      entry = at.slot * pagesPerSlot + at.index,
      before = table[entry]!;
    // Also where it is the same, which is held twice then.
    if (before !== NO_PAGE) pool.release(before);
    if (before === page) return;
    table[entry] = page;
    memory.map(at, page);
  }
}

/** First row that one at `position` sees. */
function firstSeen({ window }: PageGroup, position: number): number {
  return window ? Math.max(0, position - window + 1) : 0;
}

/** First row that is kept when the next one is at `position`. */
function firstKept(group: PageGroup, position: number): number {
  return Math.max(0, firstSeen(group, position) - (group.window ? REWIND_ROWS : 0));
}
