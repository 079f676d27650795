// What sessions may ask for the rows of their caches, by slot: room for more, less of them, those of another slot, those of
// a text that was computed before. Where caches lie in pages, rows of a common text are there once, and
// room is what is free in the pool of all sessions; where every slot has memory of its own (`ownRows`), nothing is shared.

import type { Loaded } from "../backend.ts";

/** A text, as far as rows hang on it. */
export interface KeyedTokens {
  /** From the first position of a slot on. */
  readonly tokens: ArrayLike<number>;
  /** What else rows hang on, such as the scales of adapters: rows made with another key are never shared. */
  readonly key: string;
}

/** Rows of a slot. */
export interface SlotRows {
  readonly slot: number;
  /** So many leading ones. */
  readonly length: number;
}

/** The rows of the caches of all slots. A slot that is opened has none; a step adds those of its rows. */
export interface CacheRows {
  /** Rows of all slots together. */
  readonly poolTokens: number;
  /** Rows that may still be reserved; what is kept of closed slots, and would be given up, counts. */
  readonly freeTokens: number;
  /** Whether `adopt` may find anything. */
  readonly sharesTexts: boolean;
  /**
   * Makes rows up to `length` writable: takes pages, gives up what is kept of earlier texts, longest unused first, and
   * copies a shared page that will be written. A step reserves what it writes by itself; who wants to know beforehand
   * whether there is room, asks here.
   *
   * @returns False if there is none; nothing has changed then.
   * @throws {RangeError} If a slot holds fewer rows.
   */
  reserve(slot: number, length: number): boolean;
  /**
   * Gives a slot room for rows that will be written from outside, in the place of its own.
   *
   * @returns False if there is none; the slot has no rows then.
   */
  restore(slot: number, length: number): boolean;
  /**
   * Forgets the rows from `length` on and gives their pages back.
   *
   * @returns How many leading rows are left: `length`, or 0 if a sliding window has left the rows that would be seen
   * from there.
   */
  truncate(slot: number, length: number): number;
  /** Makes the leading rows of a slot those of another one too, whose own are forgotten; pages are shared. */
  fork(from: SlotRows, to: number): void | Promise<void>;
  /**
   * Takes over rows of a text that begins like this one, if more than the slot has: whole pages are shared, the rows of
   * a page that agrees in part are copied. The slot's own rows must be of this text.
   *
   * @returns How many leading tokens have rows in the slot now.
   */
  adopt(slot: number, text: KeyedTokens): number;
  /**
   * Says of what text the leading rows of a slot are: pages that they fill are kept for others, also when it is closed.
   * With `isWhole` so is the last one, which the slot then copies before it goes on.
   */
  note(slot: number, text: KeyedTokens & { readonly isWhole?: boolean }): void;
  /** Forgets what is kept of texts: a device has lost its rows. */
  forgetTexts(): void;
}

/** Rows where every slot has its own memory for `capacity` of them. */
export function ownRows(
  { readState, writeState }: Pick<Loaded, "readState" | "writeState">,
  { slots, capacity }: { readonly slots: number; readonly capacity: number },
): CacheRows {
  return {
    poolTokens: slots * capacity,
    freeTokens: slots * capacity,
    sharesTexts: false,
    reserve(slot, length) {
      if (length <= capacity) return true;
      throw new RangeError(`Cannot reserve ${length} rows of slot ${slot}: it holds ${capacity}`);
    },
    restore: () => true,
    truncate: (_, length) => length,
    async fork({ slot, length }, to) {
      await writeState(to, length, await readState(slot, length));
    },
    adopt: () => 0,
    note: () => {},
    forgetTexts: () => {},
  };
}
