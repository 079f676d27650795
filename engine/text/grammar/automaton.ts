// What a scanner of bytes is: a deterministic automaton whose rows are filled in when they are first looked at, so that
// a mask of the whole vocabulary is one lookup a byte. It spells a language of code points (dfa.ts) in UTF-8 as it
// is, or as a JSON string with its quotes; how, is in spelling.ts. Characters are counted where they are complete, so
// that bounds on a text's length are numbers of the one who reads and not states.

import type { Dfa } from "./dfa.ts";

/** No text begins so. */
export const DEAD = -1;
/** A row that was not filled in. */
const UNKNOWN = -2;

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

const ACCEPTS = 1;
const COUNTS = 2;
const KNOWN = 0x80;

/** Puts rows behind a table. */
export function createTable(source: RowSource, { dfa, spelling }: {
  readonly dfa: Dfa;
  readonly spelling: Spelling;
}): Automaton {
  let table = new Int32Array(256 * 16).fill(UNKNOWN);
  let flags = new Uint8Array(64);
  const last = new Map<number, boolean>();
  const ahead = new Map<number, readonly Ahead[]>();

  function fill(state: number, byte: number): number {
    const row = source.row(state);
    const at = state * 256;
    if (at + 256 > table.length) {
      const larger = new Int32Array(Math.max(2 * table.length, at + 256)).fill(UNKNOWN);
      larger.set(table);
      table = larger;
    }
    table.set(row, at);
    return table[at + byte]!;
  }

  function flagsOf(state: number): number {
    if (state >= flags.length) {
      const larger = new Uint8Array(2 * state);
      larger.set(flags);
      flags = larger;
    }
    return flags[state] ||= KNOWN | (source.accepts(state) ? ACCEPTS : 0) |
      (source.counts(state) ? COUNTS : 0);
  }

  function next(state: number, byte: number): number {
    const at = state * 256 + byte;
    const to = at < table.length ? table[at]! : UNKNOWN;
    return to === UNKNOWN ? fill(state, byte) : to;
  }

  return {
    dfa,
    spelling,
    next,
    accepts: (state) => (flagsOf(state) & ACCEPTS) !== 0,
    counts: (state) => (flagsOf(state) & COUNTS) !== 0,
    ahead: (state) => remembered(ahead, state, () => source.ahead(state)),
    isLast: (state) =>
      remembered(last, state, () => {
        for (let byte = 0; byte < 256; byte++) if (next(state, byte) !== DEAD) return false;
        return true;
      }),
  };
}

function remembered<T>(known: Map<number, T>, key: number, make: () => T): T {
  let value = known.get(key);
  if (value === undefined) known.set(key, value = make());
  return value;
}
