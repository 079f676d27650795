// What a scanner of bytes is: a deterministic automaton whose rows are filled in when they are first looked at, so that
// a mask of the whole vocabulary is one lookup a byte. It spells a language of code points (dfa.ts) in UTF-8 as it
// is, or as a JSON string with its quotes; how, is in spelling.ts. Characters are counted where they are complete, so
// that bounds on a text's length are numbers of the one who reads and not states.

import type { Dfa } from "./dfa.ts";

/** No text begins so. */
export const DEAD = -1;
/** A row that was not filled in. */
const UNKNOWN = -2;
/** A flag of a state: the text may end there. */
export const ACCEPTS = 1;
/** A flag of a state: a character is complete when it is reached. */
export const COUNTS = 2;

/** How code points become bytes. */
export type Spelling =
  /** UTF-8. */
  | "raw"
  /** A JSON string as JSON.stringify writes it. */
  | "json";

/** What makes the rows of an automaton. */
export interface RowSource {
  /** Where the 256 bytes lead from a state; DEAD where nowhere. */
  row(state: number): ArrayLike<number>;
  /** Whether the text may end here. */
  accepts(state: number): boolean;
  /** Whether a character is complete when this state is reached. */
  counts(state: number): boolean;
  /** Places of the language where the next characters end. */
  ahead(state: number): readonly Ahead[];
}

/** A place of the language, and how many characters are to be counted until it is reached. */
export interface Ahead {
  readonly place: number;
  readonly more: number;
}

/** A scanner of bytes; state 0 is the first. */
export interface Automaton {
  /** The language that it spells. */
  readonly dfa: Dfa;
  /** How. */
  readonly spelling: Spelling;
  /**
   * `[states, 256]`: where bytes lead; below 0: nowhere, or not filled in yet, which `next` does. Another array when
   * there are more states.
   */
  readonly table: Int32Array;
  /** By state, {@linkcode ACCEPTS} and {@linkcode COUNTS}; likewise. */
  readonly flags: Uint8Array;
  /** Where a byte leads; DEAD where nowhere. */
  next(state: number, byte: number): number;
  /** Whether the text may end here. */
  accepts(state: number): boolean;
  /** Whether no byte may follow. */
  isLast(state: number): boolean;
  /** Whether a character is complete when this state is reached. */
  counts(state: number): boolean;
  /** See {@linkcode RowSource.ahead}. */
  ahead(state: number): readonly Ahead[];
}

/** States for which there is room at first. */
const FIRST_STATES = 16;

/** Puts rows behind a table. */
export function createTable(source: RowSource, { dfa, spelling }: {
  readonly dfa: Dfa;
  readonly spelling: Spelling;
}): Automaton {
  let table = new Int32Array(256 * FIRST_STATES).fill(UNKNOWN);
  let flags = new Uint8Array(FIRST_STATES);
  const last = new Map<number, boolean>();
  const ahead = new Map<number, readonly Ahead[]>();
  flags[0] = flagsOf(0);

  function flagsOf(state: number): number {
    return (source.accepts(state) ? ACCEPTS : 0) | (source.counts(state) ? COUNTS : 0);
  }

  // All states that a row leads to have room, so that no reader looks beyond the ends.
  function fill(state: number, byte: number): number {
    const row = source.row(state);
    let most = 0;
    for (let i = 0; i < 256; i++) most = Math.max(most, row[i]!);
    if (most >= flags.length) {
      const count = Math.max(2 * flags.length, most + 1);
      table = grown(table, new Int32Array(256 * count).fill(UNKNOWN));
      flags = grown(flags, new Uint8Array(count));
    }
    for (let i = 0; i < 256; i++) if (row[i]! >= 0) flags[row[i]!] ||= flagsOf(row[i]!);
    table.set(row, 256 * state);
    return row[byte]!;
  }

  function next(state: number, byte: number): number {
    const to = table[256 * state + byte]!;
    return to === UNKNOWN ? fill(state, byte) : to;
  }

  return {
    dfa,
    spelling,
    get table() {
      return table;
    },
    get flags() {
      return flags;
    },
    next,
    accepts: (state) => (flags[state]! & ACCEPTS) !== 0,
    counts: (state) => (flags[state]! & COUNTS) !== 0,
    ahead: (state) => remembered(ahead, state, () => source.ahead(state)),
    isLast: (state) =>
      remembered(last, state, () => {
        for (let byte = 0; byte < 256; byte++) if (next(state, byte) !== DEAD) return false;
        return true;
      }),
  };
}

function grown<T extends Int32Array | Uint8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

function remembered<T>(known: Map<number, T>, key: number, make: () => T): T {
  let value = known.get(key);
  if (value === undefined) known.set(key, value = make());
  return value;
}
