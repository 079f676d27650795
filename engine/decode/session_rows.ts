// The tokens of a session and the rows that its slot has for them. Rows of a text that another session has computed are
// taken over, and said to be there for others (run/pages). There may be fewer than tokens, since others needed their room
// (cache_room.ts), or a sliding window has left behind what is seen from where a session was rewound to. What is given to
// be computed is checked here, too: tokens of texts, and sources that an encoder reads.

import { ResourceError } from "../errors.ts";
import { PAGE_ROWS } from "../run/pages/groups.ts";
import { AXES } from "../run/step.ts";
import type { CacheHolder } from "./cache_room.ts";
import type { SeenPicture } from "./pictures/picture_table.ts";
import { placeTokens } from "./pictures/places.ts";
import type { Runtime } from "./runtime.ts";

/** Tokens and rows of a slot. */
export class SessionRows implements CacheHolder {
  readonly slot: number;
  readonly tokens: Int32Array;
  /** By axis, how far a token's place is from its position, where rotations go by place. */
  readonly offsets: readonly Int32Array[] | undefined;
  /** Where a step of these rows may end, where it must not cut a picture. */
  readonly cut: ((from: number, to: number) => number) | undefined;
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
  /** Held, so that their values are there. */
  #held: readonly SeenPicture[] = [];

  constructor(runtime: Runtime, slot: number) {
    this.slot = slot;
    this.tokens = new Int32Array(runtime.capacity);
    this.scales = runtime.adapters.map(({ scale }) => scale);
    this.#runtime = runtime;
    const { sight, capacity } = runtime;
    if (sight?.byPlace) {
      this.offsets = Array.from({ length: AXES }, () => new Int32Array(capacity));
    }
    if (sight?.seesWhole) this.cut = (from, to) => this.#cutAtPicture(from, to);
    if (!runtime.source) runtime.caches.add(this);
  }

  /** Writes tokens from a position on. */
  write(
    tokens: ArrayLike<number>,
    { at = 0, start = 0 }: { readonly at?: number; readonly start?: number } = {},
  ): void {
    const end = at + tokens.length - start;
    let seen = 0;
    for (let i = at; i < end; i++) {
      const id = tokens[start + i - at]!;
      this.tokens[i] = id;
      if (id < 0) seen++;
    }
    const { sight } = this.#runtime, { offsets } = this;
    if (!sight) return;
    if (at === 0 || seen > 0) this.#held = sight.table.among(this.tokens.subarray(0, end));
    if (!offsets) return;
    placeTokens({ tokens: this.tokens, offsets, pictures: sight.table }, { from: at, to: end });
  }

  /** The pictures among the tokens. */
  get pictures(): readonly SeenPicture[] {
    return this.#held.length === 0
      ? []
      : this.#runtime.sight!.table.among(this.tokens.subarray(0, this.length));
  }

  #cutAtPicture(from: number, to: number): number {
    const id = this.tokens[to - 1]!;
    if (id >= 0) return to;
    const { row, count } = this.#runtime.sight!.table.placeOf(id);
    return row === count - 1 ? to : Math.max(from, to - row - 1);
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

/**
 * Tokens are of the vocabulary, or rows of pictures that the model has looked at.
 *
 * @throws {RangeError} Naming the first that is neither. @throws {TypeError} If they are no list: a text, as a rule.
 */
export function checkTokens(
  tokens: ArrayLike<number>,
  { vocabulary, sight }: Pick<Runtime, "vocabulary" | "sight">,
): void {
  if (typeof tokens !== "object" || tokens === null) {
    throw new TypeError(
      "Cannot compute tokens: they are a list of ids, as model.tokenizer.encode(text) gives",
    );
  }
  for (let index = 0; index < tokens.length; index++) {
    const id = tokens[index]!;
    if (id < 0 && sight?.table.has(id)) continue;
    if (!Number.isInteger(id) || id < 0 || id >= vocabulary) {
      throw new RangeError(
        `Cannot compute token ${id} at index ${index}: ids go from 0 to ${vocabulary - 1}`,
      );
    }
  }
}

/** What says that so many more tokens do not fit behind those of a session. */
export function noRoom(
  { name, capacity }: Pick<Runtime, "name" | "capacity">,
  { length, count, most }: {
    readonly length: number;
    readonly count: number;
    /** Tokens that a session holds. */
    readonly most: number;
  },
): ResourceError {
  const [place, option] = most < capacity
    ? ["the caches of all sessions hold", "cacheTokens"]
    : ["the context holds", "contextLength"];
  return new ResourceError(
    length === 0
      ? `the prompt has ${count} tokens, and ${place} ${most}`
      : `${count} more tokens do not fit: the session has ${length} of ${most}`,
    {
      file: name,
      remedy: `Shorten it, or load the model with a larger ${option}`,
      tokens: { given: length + count, room: most },
    },
  );
}

/** Rows of a source; those of sound have features in place of tokens. */
export interface SourceRows {
  readonly tokens: ArrayLike<number>;
  readonly features: Float32Array | undefined;
}

/**
 * The rows of a source.
 *
 * @throws {TypeError} If the model reads none. @throws {RangeError} If it is empty, or of another size than a window.
 * @throws {ResourceError} If it is too long.
 */
export function sourceRows(runtime: Runtime, given: ArrayLike<number>): SourceRows {
  const { source, name } = runtime;
  if (!source) throw new TypeError(`Cannot encode a source: ${name} is no encoder-decoder`);
  if (source.sound) {
    const { mels, frames } = source.sound.features;
    if (given.length !== mels * frames) {
      throw new RangeError(
        `Cannot encode ${given.length} features: a window of sound has ${mels} · ${frames}`,
      );
    }
    const features = given instanceof Float32Array ? given : Float32Array.from(given);
    return { tokens: new Int32Array(source.capacity), features };
  }
  if (given.length === 0) throw new RangeError("Cannot encode an empty source");
  if (given.length > source.capacity) {
    throw new ResourceError(
      `the source has ${given.length} tokens, and ${source.capacity} fit`,
      { file: name, remedy: "Shorten it, or load the model with a larger contextLength" },
    );
  }
  checkTokens(given, runtime);
  return { tokens: given, features: undefined };
}
