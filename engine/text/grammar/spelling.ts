// How a language of code points is written in bytes, as rows of a scanner (automaton.ts). A state is a place in the
// language and what was read of the next character: bytes of UTF-8, or of an escape. Where all characters that begin
// so lead to one place, that place alone is remembered, so that free text needs a dozen states.
//
// JSON (RFC 8259): quotes around, no control characters, `"` and `\` as escapes. Characters beyond 0xFFFF are two
// \u escapes; one half alone is a character too, unless the other half follows.

import {
  type Ahead,
  type Automaton,
  createTable,
  DEAD,
  type RowSource,
  type Spelling,
} from "./automaton.ts";
import type { Dfa } from "./dfa.ts";

/** What was read of a character; `at` is the place in the language before it. */
type Reading =
  /** Before the first quote. */
  | { readonly kind: "open" }
  /** Between characters. */
  | { readonly kind: "between"; readonly at: number }
  /** The same, but nothing is to be counted: behind the first quote, or the second half of a pair. */
  | { readonly kind: "paired"; readonly at: number }
  /** Behind the first half of a pair, alone so far: it may stay so, in place `at`. */
  | { readonly kind: "half"; readonly at: number; readonly before: number; readonly high: number }
  /** So many digits or bytes are wanted; whatever they are, they lead to `to`. */
  | { readonly kind: "bytes" | "digits"; readonly wanted: number; readonly to: number }
  /** Bytes are wanted; what they are matters. */
  | { readonly kind: "prefix"; readonly at: number; readonly wanted: number; readonly bits: number }
  /** Behind a backslash. */
  | { readonly kind: "escape"; readonly at: number; readonly half: Half | undefined }
  /** Hexadecimal digits are wanted. */
  | {
    readonly kind: "hex";
    readonly at: number;
    readonly wanted: number;
    readonly bits: number;
    readonly half: Half | undefined;
  }
  /** Behind the last quote. */
  | { readonly kind: "closed" };

/** The first half of a pair, and the place before it. */
interface Half {
  readonly before: number;
  readonly high: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SHORT: ReadonlyMap<number, number> = new Map(
  [["b", 8], ["t", 9], ["n", 10], ["f", 12], ["r", 13], ['"', QUOTE], ["\\", BACKSLASH], ["/", 47]]
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
  readonly #isKey: boolean;
  readonly #readings: Reading[] = [];
  readonly #byKey = new Map<string, number>();

  constructor(dfa: Dfa, spelling: Spelling) {
    this.#dfa = dfa;
    this.#isRaw = spelling === "raw";
    this.#isKey = spelling === "key";
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
      case "between":
      case "paired":
        return [{ place: reading.at, more: 0 }];
      case "half":
        return [...[reading.at].filter((at) => at !== DEAD), ...this.#pairs(reading)]
          .map((place) => ({ place, more: 0 }));
      case "bytes":
      case "digits":
        return [{ place: reading.to, more: 1 }];
      case "open":
        return [{ place: 0, more: 0 }];
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
        row[QUOTE] = this.#intern({ kind: "paired", at: 0 });
        break;
      case "between":
      case "paired":
      case "half":
        this.#character(row, reading);
        break;
      case "bytes":
        row.fill(this.#wanted("bytes", { wanted: reading.wanted - 1, to: reading.to }), 0x80, 0xc0);
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
      case "digits":
        for (const [byte] of this.#hexDigits()) {
          row[byte] = this.#wanted("digits", { wanted: reading.wanted - 1, to: reading.to });
        }
        break;
      case "hex":
        for (const [byte, digit] of this.#hexDigits()) {
          const { at, half, wanted, bits } = reading;
          row[byte] = this.#hex({ at, half, wanted: wanted - 1, bits: bits << 4 | digit });
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

  #wanted(kind: "bytes" | "digits", { wanted, to }: { wanted: number; to: number }): number {
    return wanted === 0 ? this.#between(to) : this.#intern({ kind, wanted, to });
  }

  #transitions(at: number): readonly number[] {
    return at === DEAD ? [] : this.#dfa.transitions(at);
  }

  /** Where a code point leads. */
  #step(at: number, point: number): number {
    const list = this.#transitions(at);
    const i = rangeBefore(list, point);
    return i >= 0 && point <= list[i + 1]! ? list[i + 2]! : DEAD;
  }

  /** Where all code points of a range lead: one place, DEAD, or undefined for several. */
  #stepAll(at: number, [low, high]: readonly [number, number]): number | undefined {
    const list = this.#transitions(at);
    const i = rangeBefore(list, low);
    if (i >= 0 && low <= list[i + 1]!) return high <= list[i + 1]! ? list[i + 2]! : undefined;
    const next = i < 0 ? 0 : i + 3;
    return next < list.length && list[next]! <= high ? undefined : DEAD;
  }

  // Where the second half of a pair leads.
  #pairs({ before, high }: Half): number[] {
    const first = 0x10000 + (high - 0xd800 << 10);
    const list = this.#dfa.transitions(before);
    const places: number[] = [];
    for (let i = 0; i < list.length; i += 3) {
      if (overlaps([list[i]!, list[i + 1]!], [first, first + 0x3ff])) places.push(list[i + 2]!);
    }
    return places;
  }

  // A character begins.
  #character(row: Int32Array, { at, ...reading }: { at: number; before?: number; high?: number }) {
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
    if (at !== DEAD && this.#dfa.accepts(at)) row[QUOTE] = this.#intern({ kind: "closed" });
    const half = reading.high === undefined
      ? undefined
      : { before: reading.before!, high: reading.high };
    const escape = this.#intern({ kind: "escape", at, half });
    if (this.row(escape).some((to) => to !== DEAD)) row[BACKSLASH] = escape;
  }

  // So many bytes are still wanted of a character that begins with these bits.
  #continued({ at, wanted, bits }: { at: number; wanted: number; bits: number }): number {
    const low = bits << 6 * wanted;
    const high = low + (1 << 6 * wanted) - 1;
    const isWhole = !overlaps([low, high], [0, 0x7f]) && !overlaps([low, high], [0xd800, 0xdfff]) &&
      high <= 0x10ffff && (wanted !== 2 || low >= 0x1000) && (wanted !== 3 || low >= 0x40000);
    const to = isWhole ? this.#stepAll(at, [low, high]) : undefined;
    if (to !== undefined) return to === DEAD ? DEAD : this.#wanted("bytes", { wanted, to });
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

  #escape(row: Int32Array, { at, half }: { at: number; half: Half | undefined }): void {
    for (const [letter, point] of SHORT) {
      if (this.#isKey && point === 0x2f) continue;
      row[letter] = this.#between(this.#step(at, point));
    }
    row[0x75] = this.#hex({ at, half, wanted: 4, bits: 0 });
  }

  #hexDigits(): readonly (readonly [byte: number, digit: number])[] {
    return this.#isKey ? LOWER_DIGITS : DIGITS;
  }

  // So many digits are still wanted of an escape that begins with these bits.
  #hex(
    { at, half, wanted, bits }: {
      at: number;
      half: Half | undefined;
      wanted: number;
      bits: number;
    },
  ): number {
    const low = bits << 4 * wanted;
    const high = low + (1 << 4 * wanted) - 1;
    if (wanted === 0) return this.#unit(low, { at, half });
    if (!this.#isKey && !overlaps([low, high], [0xd800, 0xdfff])) {
      const to = this.#stepAll(at, [low, high]);
      if (to !== undefined) return to === DEAD ? DEAD : this.#wanted("digits", { wanted, to });
    }
    return this.#isDeadUnits([low, high], { at, half })
      ? DEAD
      : this.#intern({ kind: "hex", at, wanted, bits, half });
  }

  // A whole \u escape.
  #unit(unit: number, { at, half }: { at: number; half: Half | undefined }): number {
    const isHigh = unit >= 0xd800 && unit < 0xdc00;
    const isLow = unit >= 0xdc00 && unit < 0xe000;
    if (this.#isKey && !isHigh && !isLow && (unit >= 0x20 || SHORT_POINTS.has(unit))) return DEAD;
    if (isLow && half) {
      if (this.#isKey) return DEAD;
      const to = this.#step(half.before, 0x10000 + (half.high - 0xd800 << 10) + unit - 0xdc00);
      return to === DEAD ? DEAD : this.#intern({ kind: "paired", at: to });
    }
    if (!isHigh) return this.#between(this.#step(at, unit));
    return this.#half(unit, at);
  }

  // The first half of a pair: whole in itself, or to be followed by the other.
  #half(high: number, before: number): number {
    const at = this.#step(before, high);
    const first = 0x10000 + (high - 0xd800 << 10);
    const isPair = !this.#isKey && this.#stepAll(before, [first, first + 0x3ff]) !== DEAD;
    if (at !== DEAD) return this.#intern({ kind: "half", at, before, high });
    return isPair ? this.#intern({ kind: "half", at: DEAD, before, high }) : DEAD;
  }

  #isDeadUnits(
    [low, high]: readonly [number, number],
    { at, half }: { at: number; half: Half | undefined },
  ): boolean {
    const isBelow = !half && this.#stepAll(at, [0xd800, 0xdfff]) === DEAD &&
      this.#stepAll(at, [0x10000, 0x10ffff]) === DEAD;
    for (let unit = low; unit <= high; unit++) {
      if (isBelow && unit === 0xd800) unit = 0xe000;
      if (unit < 0xd800 || unit > 0xdfff) {
        if (!this.#isKey) {
          const end = Math.min(high, unit < 0xd800 ? 0xd7ff : 0xffff);
          if (this.#stepAll(at, [unit, end]) !== DEAD) return false;
          unit = end;
          continue;
        }
        if (unit >= 0x20 && unit < 0xd800) {
          unit = 0xd7ff;
          continue;
        }
        if (unit > 0xdfff) return true;
      }
      if (this.#unit(unit, { at, half }) !== DEAD) return false;
    }
    return true;
  }
}

const HEX = "0123456789abcdef";
const LOWER_DIGITS = [...HEX].map((digit, value) => [digit.charCodeAt(0), value] as const);
const DIGITS = [
  ...LOWER_DIGITS,
  ...[..."ABCDEF"].map((digit, i) => [digit.charCodeAt(0), 10 + i] as const),
];
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
