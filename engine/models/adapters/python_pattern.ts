// Regular expressions as Python's `re` reads them, for names of modules: the settings of adapters hold some, and they
// come from strangers. JavaScript's own may take forever; here every part remembers where it can end from each place
// of the text, so the work is bounded by parts × places². Only whether a text matches is asked, so greed and groups
// do not matter. Left out, and refused by name: looking back, flags, references to groups, atomic parts.

import { UnsupportedError } from "../../errors.ts";

/** Where a part can end, by where it begins in the text. */
type Part = (text: string, from: number, memory: Memory) => ReadonlySet<number>;
type Memory = Map<Part, Map<number, ReadonlySet<number>>>;

const MAX_LENGTH = 2000;
const MAX_TEXT = 200;
const MAX_DEPTH = 60;
const MAX_REPEAT = 1000;

/**
 * A pattern as a test of whole texts, `re.fullmatch`.
 *
 * @param at Where the pattern stands, for messages.
 * @throws {UnsupportedError} If it is no pattern, or one that is not read.
 */
export function pythonPattern(
  pattern: string,
  at: { readonly file: string; readonly place: string },
): (text: string) => boolean {
  const fail = (what: string): never => {
    const shown = JSON.stringify(pattern.length > 80 ? `${pattern.slice(0, 77)}...` : pattern);
    throw new UnsupportedError(`the pattern ${shown} ${what}`, at);
  };
  if (pattern.length > MAX_LENGTH) fail(`has more than ${MAX_LENGTH} characters`);
  const whole = parse(pattern, fail);
  return (text) => {
    if (text.length > MAX_TEXT) fail(`is for a name of more than ${MAX_TEXT} characters`);
    return whole(text, 0, new Map()).has(text.length);
  };
}

type Fail = (what: string) => never;

/** Where reading is. */
interface Cursor {
  readonly pattern: string;
  readonly fail: Fail;
  at: number;
  depth: number;
}

function parse(pattern: string, fail: Fail): Part {
  const cursor: Cursor = { pattern, fail, at: 0, depth: 0 };
  const whole = choices(cursor);
  if (cursor.at < pattern.length) fail("closes a group that it did not open");
  return whole;
}

/** The next character. */
function take(cursor: Cursor, gone: string): string {
  return cursor.pattern[cursor.at++] ?? cursor.fail(gone);
}

function choices(cursor: Cursor): Part {
  if (++cursor.depth > MAX_DEPTH) cursor.fail(`is nested deeper than ${MAX_DEPTH}`);
  const all = [sequence(cursor)];
  while (cursor.pattern[cursor.at] === "|") {
    cursor.at++;
    all.push(sequence(cursor));
  }
  cursor.depth--;
  return all.length === 1
    ? all[0]!
    : remembered((text, from, memory) => union(all.map((part) => part(text, from, memory))));
}

function sequence(cursor: Cursor): Part {
  const parts: Part[] = [];
  while (![undefined, "|", ")"].includes(cursor.pattern[cursor.at])) {
    parts.push(repeated(cursor, atom(cursor)));
  }
  return remembered((text, from, memory) =>
    parts.reduce<ReadonlySet<number>>(
      (places, part) => step(part, places, { text, memory }),
      new Set([from]),
    )
  );
}

const REPETITION = /([*+?])|\{(\d*)(,?)(\d*)\}/y;

function repeated(cursor: Cursor, part: Part): Part {
  const { pattern, fail } = cursor;
  for (;;) {
    REPETITION.lastIndex = cursor.at;
    const [whole, sign, least, comma, most] = REPETITION.exec(pattern) ?? [];
    if (whole === undefined || whole === "{}" || whole === "{,}") return part;
    cursor.at += whole.length;
    if (pattern[cursor.at] === "+") fail("has a possessive repetition, which is not read");
    if (pattern[cursor.at] === "?") cursor.at++; // lazy: the same texts match
    const from = sign === "+" ? 1 : Number(least || 0);
    const open = sign === "*" || sign === "+" || (comma === "," && most === "");
    const to = open ? Infinity : sign === "?" ? 1 : comma === "" ? from : Number(most);
    if (from > MAX_REPEAT || (to !== Infinity && to > MAX_REPEAT)) {
      fail(`repeats a part more than ${MAX_REPEAT} times`);
    }
    part = repeat(part, from, to);
  }
}

function atom(cursor: Cursor): Part {
  const character = cursor.pattern[cursor.at++]!;
  switch (character) {
    case "(":
      return group(cursor);
    case "[":
      return one(characterClass(cursor));
    case ".":
      return one((c) => c !== "\n");
    case "^":
      return where((_, from) => from === 0);
    case "$":
      return where((text, from) =>
        from === text.length || (from === text.length - 1 && text[from] === "\n")
      );
    case "\\":
      return escaped(cursor);
    case "*":
    case "+":
    case "?":
      return cursor.fail(`repeats nothing at ${cursor.at - 1}`);
    default:
      return one((c) => c === character);
  }
}

function group(cursor: Cursor): Part {
  const { pattern, fail } = cursor;
  const [opening] = /^(\?(:|=|!|P<\w+>))?/.exec(pattern.slice(cursor.at))!;
  cursor.at += opening.length;
  if (opening === "" && pattern[cursor.at] === "?") fail("has a kind of group that is not read");
  const inner = choices(cursor);
  if (pattern[cursor.at++] !== ")") fail("has a group without an end");
  if (opening !== "?=" && opening !== "?!") return inner;
  return (text, from, memory) => {
    const isAhead = inner(text, from, memory).size > 0;
    return new Set(isAhead === (opening === "?=") ? [from] : []);
  };
}

function escaped(cursor: Cursor): Part {
  const letter = take(cursor, "ends in a backslash");
  const border = (text: string, from: number) => isWord(text[from - 1]) !== isWord(text[from]);
  if (letter === "b") return where(border);
  if (letter === "B") return where((text, from) => !border(text, from));
  if (letter === "A") return where((_, from) => from === 0);
  if (letter === "Z") return where((text, from) => from === text.length);
  return one(escapedCharacter(letter, cursor.fail));
}

function escapedCharacter(letter: string, fail: Fail): (c: string) => boolean {
  const known = CLASSES[letter];
  if (known) return known;
  if (/[a-zA-Z0-9]/.test(letter)) fail(`has \\${letter}, which is not read`);
  return (c) => c === letter;
}

function characterClass(cursor: Cursor): (c: string) => boolean {
  const { pattern, fail } = cursor;
  const isNegated = pattern[cursor.at] === "^";
  if (isNegated) cursor.at++;
  const isRange = () =>
    pattern[cursor.at] === "-" && ![undefined, "]"].includes(pattern[cursor.at + 1]);
  const tests: ((c: string) => boolean)[] = [];
  for (let isFirst = true; isFirst || pattern[cursor.at] !== "]"; isFirst = false) {
    const low = take(cursor, "has a class without an end");
    if (low === "\\") {
      tests.push(escapedCharacter(take(cursor, "ends in a backslash"), fail));
      if (isRange()) fail("has a range that is not read");
    } else if (isRange()) {
      const high = pattern[cursor.at + 1]!;
      if (high === "\\" || high < low) fail("has a range that is not read");
      cursor.at += 2;
      tests.push((c) => c >= low && c <= high);
    } else {
      tests.push((c) => c === low);
    }
  }
  cursor.at++;
  return (c) => tests.some((test) => test(c)) !== isNegated;
}

const isWord = (c: string | undefined): boolean => c !== undefined && /[\p{L}\p{N}_]/u.test(c);
const isDigit = (c: string): boolean => /\p{Nd}/u.test(c);
const isBlank = (c: string): boolean => /\s/.test(c);

const CLASSES: Readonly<Record<string, (c: string) => boolean>> = {
  w: isWord,
  W: (c) => !isWord(c),
  d: isDigit,
  D: (c) => !isDigit(c),
  s: isBlank,
  S: (c) => !isBlank(c),
  n: (c) => c === "\n",
  t: (c) => c === "\t",
};

function one(test: (c: string) => boolean): Part {
  return (text, from) => new Set(from < text.length && test(text[from]!) ? [from + 1] : []);
}

function where(test: (text: string, from: number) => boolean): Part {
  return (text, from) => new Set(test(text, from) ? [from] : []);
}

function union(sets: readonly ReadonlySet<number>[]): Set<number> {
  return new Set(sets.flatMap((set) => [...set]));
}

interface Run {
  readonly text: string;
  readonly memory: Memory;
}

/** Where a part ends that begins at any of some places. */
function step(part: Part, places: ReadonlySet<number>, { text, memory }: Run): Set<number> {
  return union([...places].map((from) => part(text, from, memory)));
}

function repeat(part: Part, least: number, most: number): Part {
  return remembered((text, from, memory) => {
    let places: ReadonlySet<number> = new Set([from]);
    for (let i = 0; i < least; i++) places = step(part, places, { text, memory });
    const reached = new Set(places);
    for (let i = least; i < most && places.size > 0; i++) {
      places = step(part, places, { text, memory }).difference(reached);
      for (const place of places) reached.add(place);
    }
    return reached;
  });
}

/** The same part, computed once for each place of a text. */
function remembered(part: Part): Part {
  return function again(text, from, memory) {
    const known = memory.get(again) ?? new Map<number, ReadonlySet<number>>();
    memory.set(again, known);
    const ends = known.get(from) ?? part(text, from, memory);
    known.set(from, ends);
    return ends;
  };
}
