// The tokens of a session and the rows that its slot has for them. Rows of a text that another session has computed are
// taken over, and said to be there for others (run/pages). There may be fewer than tokens, since others needed their room
// (cache_room.ts), or a sliding window has left behind what is seen from where a session was rewound to.

import { PAGE_ROWS } from "../run/pages/groups.ts";
import type { CacheHolder } from "./cache_room.ts";
import type { Runtime } from "./runtime.ts";

/** Tokens and rows of a slot. */
export class SessionRows implements CacheHolder {
  readonly slot: number;
  readonly tokens: Int32Array;
  /** Tokens of the session; behind them may be some that are to be computed. */
  length = 0;
  /** Leading tokens that have rows. */
  count = 0;
  reserved = 0;
  /** How much each adapter counts, by index. */
  scales: readonly number[];
  isBusy = false;
  since = 0;
  /** The prompt at work, for which others may wait. */
  prompt: Disposable | undefined;
  readonly #runtime: Runtime;

  constructor(runtime: Runtime, slot: number) {
    this.slot = slot;
    this.tokens = new Int32Array(runtime.capacity);
    this.scales = runtime.adapters.map(({ scale }) => scale);
    this.#runtime = runtime;
    if (!runtime.source) runtime.caches.add(this);
  }

  get cached(): number {
    return this.count;
  }

  /** Whose rows a step computes; nobody's that can be computed again, if they hang on a source. */
  get holder(): { readonly holder?: CacheHolder } {
    return this.#runtime.source ? {} : { holder: this };
  }

  /** A query begins to use them. */
  use(): void {
    this.since = this.#runtime.caches.nextQuery();
  }

  giveUp(): void {
    this.forget(0);
    this.prompt?.[Symbol.dispose]();
  }

  takeBack(): void {
    this.adopt(this.length);
  }

  /** Takes over rows of the first `count` of the tokens at hand. */
  adopt(count: number): void {
    const { executable, source } = this.#runtime;
    // What is written follows from the source, too.
    if (source || count <= this.count) return;
    const tokens = this.tokens.subarray(0, count), key = this.scales.join();
    this.count = Math.max(this.count, executable.rows.adopt(this.slot, { tokens, key }));
    this.reserved = Math.max(this.reserved, this.count);
  }

  /** Forgets the rows from `length` on. */
  truncate(length: number): void {
    if (length < this.count) this.forget(length);
  }

  /** The same where there are rows that nobody has counted. */
  forget(length: number): void {
    this.count = this.reserved = this.#runtime.executable.rows.truncate(this.slot, length);
    this.#runtime.caches.changed();
  }

  /** Says of what text the rows are, when `count` new ones have filled a page. */
  noteNew(count: number): void {
    if (this.count % PAGE_ROWS < count) this.note(false);
  }

  /** The last step is done: says of what text the rows are, of all pages. */
  close(): void {
    this.note(true);
    this.#runtime.executable.closeSlot(this.slot);
    this.#runtime.caches.delete(this);
  }

  /** Says of what text the rows are; `isWhole`: also those of the last page, which is not full. */
  note(isWhole: boolean): void {
    const { executable, source } = this.#runtime;
    if (source) return;
    const tokens = this.tokens.subarray(0, this.count), key = this.scales.join();
    executable.rows.note(this.slot, { tokens, key, isWhole });
  }
}
