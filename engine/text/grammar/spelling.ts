// How a language of code points is written in bytes, as rows of a scanner (automaton.ts). A state is a place in the
// language and what was read of the next character: bytes of UTF-8, or of an escape. Where all characters that begin
// so lead to one place, that place alone is remembered, so that free text needs a dozen states.
//
// JSON (RFC 8259) as JSON.stringify writes it (ECMA-262, QuoteJSONString): quotes around, `"`, `\` and control characters
// as escapes, the shortest that there is, and one half of a pair alone as an escape. So each text has one way of being
// written, and a model cannot hide in others.

import {
  type Ahead,
  type Automaton,
  createTable,
  DEAD,
  type RowSource,
  type Spelling,
} from "./automaton.ts";
import { LAST } from "./code_points.ts";
import type { Dfa } from "./dfa.ts";

/** What was read of a character; `at` is the place in the language before it. */
type Reading =
  /** Before the first quote. */
  | { readonly kind: "open" }
  /** Behind the first quote. */
  | { readonly kind: "begun"; readonly at: number }
  /** Between characters. */
  | { readonly kind: "between"; readonly at: number }
  /** The same behind the escaped first half of a pair; with the second half both would be written as one character. */
  | { readonly kind: "half"; readonly at: number }
  /** So many bytes are wanted; whatever they are, they lead to `to`. */
  | { readonly kind: "bytes"; readonly wanted: number; readonly to: number }
  /** Bytes are wanted; what they are matters. */
  | { readonly kind: "prefix"; readonly at: number; readonly wanted: number; readonly bits: number }
  /** Behind a backslash. */
  | { readonly kind: "escape"; readonly at: number; readonly isHalf: boolean }
  /** Hexadecimal digits are wanted. */
  | {
    readonly kind: "hex";
    readonly at: number;
    readonly isHalf: boolean;
    readonly wanted: number;
    readonly bits: number;
  }
  /** Behind the last quote. */
  | { readonly kind: "closed" };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SHORT: ReadonlyMap<number, number> = new Map(
  [["b", 8], ["t", 9], ["n", 10], ["f", 12], ["r", 13], ['"', QUOTE], ["\\", BACKSLASH]]
    .map(([letter, point]) => [(letter as string).charCodeAt(0), point as number]),
);

/** The scanner of a language. */
export function spell(dfa: Dfa, spelling: Spelling): Automaton {
  const speller = new Speller(dfa, spelling);
  return createTable({
    row: (state) => speller.row(state),
    accepts: (state) => speller.accepts(state),
    counts: (state) => speller.counts(state),
    ahead: (state) => speller.ahead(state),
  }, { dfa, spelling });
}

class Speller implements RowSource {
  readonly #dfa: Dfa;
  readonly #isRaw: boolean;
  readonly #readings: Reading[] = [];
  readonly #byKey = new Map<string, number>();

  constructor(dfa: Dfa, spelling: Spelling) {
    this.#dfa = dfa;
    this.#isRaw = spelling === "raw";
    this.#intern(this.#isRaw ? { kind: "between", at: 0 } : { kind: "open" });
  }

  accepts(state: number): boolean {
    const reading = this.#readings[state]!;
    return this.#isRaw
      ? reading.kind === "between" && this.#dfa.accepts(reading.at)
      : reading.kind === "closed";
  }

  counts(state: number): boolean {
    const { kind } = this.#readings[state]!;
    return kind === "between" || kind === "half";
  }

  ahead(state: number): readonly Ahead[] {
    const reading = this.#readings[state]!;
    switch (reading.kind) {
      case "begun":
      case "between":
      case "half":
        return [{ place: reading.at, more: 0 }];
      case "bytes":
        return [{ place: reading.to, more: 1 }];
      case "open":
        return [{ place: this.#settled(0), more: 0 }];
      case "closed":
        return [];
      default: {
        const targets = new Set(this.row(state).filter((to) => to !== DEAD));
        return [...targets].flatMap((to) =>
          this.ahead(to).map(({ place, more }) => ({ place, more: more + +this.counts(to) }))
        );
      }
    }
  }

  row(state: number): Int32Array {
    const row = new Int32Array(256).fill(DEAD);
    const reading = this.#readings[state]!;
    switch (reading.kind) {
      case "open":
        row[QUOTE] = this.#intern({ kind: "begun", at: this.#settled(0) });
        break;
      case "begun":
      case "between":
      case "half":
        this.#character(row, reading);
        break;
      case "bytes":
        row.fill(this.#bytes(reading.wanted - 1, reading.to), 0x80, 0xc0);
        break;
      case "prefix":
        for (let byte = 0x80; byte < 0xc0; byte++) {
          const wanted = reading.wanted - 1;
          const bits = reading.bits << 6 | byte & 0x3f;
          const isOverlong = bits << 6 * wanted < [0, 0x800, 0x10000][wanted]!;
          row[byte] = isOverlong ? DEAD : this.#continued({ at: reading.at, wanted, bits });
        }
        break;
      case "escape":
        this.#escape(row, reading);
        break;
      case "hex":
        for (const [digit, byte] of HEX_DIGITS.entries()) {
          const { at, isHalf, wanted, bits } = reading;
          row[byte] = this.#hex({ at, isHalf, wanted: wanted - 1, bits: bits << 4 | digit });
        }
    }
    return row;
  }

  #intern(reading: Reading): number {
    const key = JSON.stringify(reading);
    let id = this.#byKey.get(key);
    if (id === undefined) {
      id = this.#readings.push(reading) - 1;
      this.#byKey.set(key, id);
    }
    return id;
  }

  #between(at: number): number {
    return at === DEAD ? DEAD : this.#intern({ kind: "between", at });
  }

  #bytes(wanted: number, to: number): number {
    return wanted === 0 ? this.#between(to) : this.#intern({ kind: "bytes", wanted, to });
  }

  // The place in which any text stays that goes on from this one, where that is so.
  #settled(at: number): number {
    const isFree = (place: number, to: number) => {
      const [low, high, next] = this.#dfa.transitions(place);
      return this.#dfa.accepts(place) && low === 0 && high === LAST && next === to;
    };
    const to = this.#dfa.transitions(at)[2] ?? at;
    return isFree(at, to) && isFree(to, to) ? to : at;
  }

  /** Where a code point leads. */
  #step(at: number, point: number): number {
    const list = this.#dfa.transitions(at);
    const i = rangeBefore(list, point);
    return i >= 0 && point <= list[i + 1]! ? list[i + 2]! : DEAD;
  }

  /** Where all code points of a range lead: one place, DEAD, or undefined for several. */
  #stepAll(at: number, [low, high]: readonly [number, number]): number | undefined {
    const list = this.#dfa.transitions(at);
    const i = rangeBefore(list, low);
    if (i >= 0 && low <= list[i + 1]!) return high <= list[i + 1]! ? list[i + 2]! : undefined;
    const next = i < 0 ? 0 : i + 3;
    return next < list.length && list[next]! <= high ? undefined : DEAD;
  }

  // A character begins.
  #character(row: Int32Array, { at, kind }: { readonly at: number; readonly kind: string }): void {
    for (let byte = 0; byte < 0x80; byte++) {
      if (!this.#isRaw && (byte < 0x20 || byte === QUOTE || byte === BACKSLASH)) continue;
      row[byte] = this.#between(this.#step(at, byte));
    }
    for (let byte = 0xc2; byte < 0xe0; byte++) {
      row[byte] = this.#continued({ at, wanted: 1, bits: byte & 0x1f });
    }
    for (let byte = 0xe0; byte < 0xf0; byte++) {
      row[byte] = this.#continued({ at, wanted: 2, bits: byte & 0xf });
    }
    for (let byte = 0xf0; byte < 0xf5; byte++) {
      row[byte] = this.#continued({ at, wanted: 3, bits: byte & 7 });
    }
    if (this.#isRaw) return;
    if (this.#dfa.accepts(at)) row[QUOTE] = this.#intern({ kind: "closed" });
    const escape = this.#intern({ kind: "escape", at, isHalf: kind === "half" });
    if (this.row(escape).some((to) => to !== DEAD)) row[BACKSLASH] = escape;
  }

  // So many bytes are still wanted of a character that begins with these bits.
  #continued({ at, wanted, bits }: { at: number; wanted: number; bits: number }): number {
    const low = bits << 6 * wanted;
    const high = low + (1 << 6 * wanted) - 1;
    const isWhole = !overlaps([low, high], [0, 0x7f]) && !overlaps([low, high], [0xd800, 0xdfff]) &&
      high <= 0x10ffff && (wanted !== 2 || low >= 0x1000) && (wanted !== 3 || low >= 0x40000);
    const to = isWhole ? this.#stepAll(at, [low, high]) : undefined;
    if (to !== undefined) return to === DEAD ? DEAD : this.#bytes(wanted, to);
    if (wanted === 0) return DEAD; // half of a pair, or beyond the last
    const from = Math.max(low, wanted === 3 ? 0x10000 : wanted === 2 ? 0x800 : low);
    return this.#isDead(at, [from, Math.min(high, 0x10ffff)])
      ? DEAD
      : this.#intern({ kind: "prefix", at, wanted, bits });
  }

  // Whether UTF-8 has no character in a range that leads anywhere.
  #isDead(at: number, [low, high]: readonly [number, number]): boolean {
    if (low > high) return true;
    if (!overlaps([low, high], [0xd800, 0xdfff])) return this.#stepAll(at, [low, high]) === DEAD;
    return this.#isDead(at, [low, 0xd7ff]) && this.#isDead(at, [0xe000, high]);
  }

  #escape(row: Int32Array, { at, isHalf }: { at: number; isHalf: boolean }): void {
    for (const [letter, point] of SHORT) row[letter] = this.#between(this.#step(at, point));
    row[0x75] = this.#hex({ at, isHalf, wanted: 4, bits: 0 });
  }

  // So many digits are still wanted of an escape that begins with these bits.
  #hex(
    { at, isHalf, wanted, bits }: { at: number; isHalf: boolean; wanted: number; bits: number },
  ): number {
    if (wanted === 0) return this.#unit(bits, { at, isHalf });
    const low = bits << 4 * wanted;
    const high = low + (1 << 4 * wanted) - 1;
    const isAlive = ESCAPED.some(([first, last]) => {
      const end = Math.min(high, last);
      let unit = Math.max(low, first);
      if (unit > end || this.#stepAll(at, [unit, end]) === DEAD) return false;
      while (unit <= end && this.#unit(unit, { at, isHalf }) === DEAD) unit++;
      return unit <= end;
    });
    return isAlive ? this.#intern({ kind: "hex", at, isHalf, wanted, bits }) : DEAD;
  }

  // A whole \u escape.
  #unit(unit: number, { at, isHalf }: { at: number; isHalf: boolean }): number {
    if (unit < 0x20) return SHORT_POINTS.has(unit) ? DEAD : this.#between(this.#step(at, unit));
    if (unit >= 0xdc00) return isHalf ? DEAD : this.#between(this.#step(at, unit));
    const to = this.#step(at, unit);
    return to === DEAD || !this.#goesOn(to) ? DEAD : this.#intern({ kind: "half", at: to });
  }

  // Whether the first half of a pair can be left otherwise than by the second.
  #goesOn(at: number): boolean {
    const list = this.#dfa.transitions(at);
    for (let i = 0; i < list.length; i += 3) {
      if (list[i]! < 0xdc00 || list[i + 1]! > 0xdfff) return true;
    }
    return this.#dfa.accepts(at);
  }
}

const HEX_DIGITS = new TextEncoder().encode("0123456789abcdef");
/** Code units that are written as \u escapes, but for those with a letter. */
const ESCAPED: readonly (readonly [number, number])[] = [[0, 0x1f], [0xd800, 0xdfff]];
const SHORT_POINTS: ReadonlySet<number> = new Set(SHORT.values());

function overlaps([a, b]: readonly [number, number], [c, d]: readonly [number, number]): boolean {
  return a <= d && c <= b;
}

// Where the last range that begins at or before a point stands; -3 if there is none.
function rangeBefore(list: readonly number[], point: number): number {
  let low = 0;
  let high = list.length / 3;
  while (low < high) {
    const middle = low + high >> 1;
    if (list[3 * middle]! <= point) low = middle + 1;
    else high = middle;
  }
  return 3 * (low - 1);
}
