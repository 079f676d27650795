// Room in the caches of a model whose sessions share a pool of rows. A session knows its tokens, so its rows can be given
// up at any time and be computed again: the answer is the same, it only comes later. When the pool runs out, those who
// compute nothing give up theirs, the longest unused first, also if their reader is only slow; then the youngest query
// does, so that the oldest one always gets on and all end. A query that gave up its rows comes back when all of its text
// has room.

import { ResourceError } from "../errors.ts";
import type { Executable } from "../run/executable.ts";

/** Somebody with rows that can be computed again. */
export interface CacheHolder {
  readonly slot: number;
  /** Leading tokens that have rows. */
  readonly cached: number;
  /** Leading tokens that have room: those, and what a step is about to compute. */
  reserved: number;
  /** Whether rows of it wait for a step. */
  isBusy: boolean;
  /** Whether a step that is under way reads them. */
  isInStep?: boolean;
  /** When a query last began to use it: a number that grows with each. */
  readonly since: number;
  /** Forgets all rows. */
  giveUp(): void;
  /** Takes over those of its text that are kept. */
  takeBack(): void;
}

/** Rows that are to be computed. */
export interface RoomWish {
  readonly slot: number;
  /** Rows of the slot that are needed at least. */
  readonly length: number;
  /** Undefined: its rows cannot be given up. */
  readonly holder: CacheHolder | undefined;
  /** Whether they come from outside, in the place of those that the slot has. */
  readonly areRestored?: boolean;
}

/** Who holds rows of a model's caches. */
export class CacheRoom {
  readonly #executable: Pick<Executable, "rows">;
  readonly #holders = new Set<CacheHolder>();
  readonly #name: string;
  readonly #listeners: (() => void)[] = [];
  #queries = 0;

  constructor(executable: Pick<Executable, "rows">, name: string) {
    this.#executable = executable;
    this.#name = name;
  }

  add(holder: CacheHolder): void {
    this.#holders.add(holder);
  }

  delete(holder: CacheHolder): void {
    this.#holders.delete(holder);
    this.changed();
  }

  /** To be called where a holder has fewer rows than before, or nobody computes any: who waits for room looks again. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Calls a function at every change. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** A number for a query that begins. */
  nextQuery(): number {
    return ++this.#queries;
  }

  /**
   * Makes room for rows of a slot; others may lose theirs.
   *
   * @returns False if older queries have it all: the holder has given up its own rows, and is to wait for `hasRoom`.
   * @throws {ResourceError} If the pool is smaller than that.
   */
  reserve({ slot, length, holder, areRestored = false }: RoomWish): boolean {
    const { rows } = this.#executable;
    while (!(areRestored ? rows.restore(slot, length) : rows.reserve(slot, length))) {
      const victim = this.#victimOf(holder);
      if (victim) victim.giveUp();
      else if (holder && this.#isShared(holder)) {
        holder.giveUp();
        return false;
      } else throw this.#tooLong(length);
    }
    if (holder) holder.reserved = Math.max(holder.reserved, length);
    return true;
  }

  /** All rows are lost: everybody computes his again, and nothing is kept of texts. */
  forgetAll(): void {
    for (const one of this.#holders) one.giveUp();
    this.#executable.rows.forgetTexts();
  }

  /** Whether a query that gave up its rows, or a new one, may begin: with so many rows, beside those that run. */
  hasRoom(length: number, holder?: CacheHolder): boolean {
    return !this.#isShared(holder) || this.#executable.rows.freeTokens >= length;
  }

  /** Whether another query has rows, which it gives back when it ends. */
  #isShared(holder: CacheHolder | undefined): boolean {
    for (const one of this.#holders) {
      if (one !== holder && one.isBusy && one.reserved > 0) return true;
    }
    return false;
  }

  #victimOf(holder: CacheHolder | undefined): CacheHolder | undefined {
    let best: CacheHolder | undefined;
    for (const one of this.#holders) {
      if (one === holder || one.reserved === 0 || one.isInStep) continue;
      if (one.isBusy && holder && one.since < holder.since) continue;
      if (!best || comesBefore(one, best)) best = one;
    }
    return best;
  }

  #tooLong(length: number): ResourceError {
    const { poolTokens } = this.#executable.rows;
    return new ResourceError(
      `the text has ${length} tokens, and the caches of all sessions hold ${poolTokens}`,
      {
        file: this.#name,
        remedy: "Shorten it, or load the model with more cacheTokens",
        tokens: { given: length, room: poolTokens },
      },
    );
  }
}

function comesBefore(one: CacheHolder, other: CacheHolder): boolean {
  if (one.isBusy !== other.isBusy) return !one.isBusy;
  return one.isBusy ? one.since > other.since : one.since < other.since;
}
