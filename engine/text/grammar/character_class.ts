// Sets of characters as regular expressions write them: classes in brackets and escapes.

import {
  charactersOf,
  type CodePoints,
  codePoints,
  complement,
  LAST,
  union,
} from "./code_points.ts";

/** Text being read. */
export interface PatternCursor {
  readonly source: string;
  /** Characters, by code point. */
  readonly characters: readonly string[];
  at: number;
}

const DIGITS = codePoints([0x30, 0x39]);
const WORD = union(DIGITS, codePoints([0x41, 0x5a], [0x61, 0x7a]), charactersOf("_"));
const SPACE = union(
  codePoints([9, 13], [0x2000, 0x200a]),
  charactersOf(" \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"),
);
const CLASSES: Readonly<Record<string, CodePoints>> = {
  ...{ d: DIGITS, D: complement(DIGITS), w: WORD, W: complement(WORD) },
  ...{ s: SPACE, S: complement(SPACE) },
};
const CONTROLS: Readonly<Record<string, number>> = {
  ...{ t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 },
};

const point = (code: number): CodePoints => [code, code];

/** The set behind an opening bracket. */
export function readClass(cursor: PatternCursor): CodePoints {
  const { characters } = cursor;
  const isNegated = characters[cursor.at] === "^";
  if (isNegated) cursor.at++;
  const sets: CodePoints[] = [];
  while (characters[cursor.at] !== "]") {
    const low = readItem(cursor);
    const isRange = characters[cursor.at] === "-" && characters[cursor.at + 1] !== "]" &&
      isSingle(low);
    if (!isRange) {
      sets.push(low);
      continue;
    }
    cursor.at++;
    const high = readItem(cursor);
    if (isSingle(high)) sets.push(codePoints([low[0]!, high[0]!]));
    else sets.push(low, charactersOf("-"), high);
  }
  cursor.at++;
  const set = union(...sets);
  return isNegated ? complement(set) : set;
}

function readItem(cursor: PatternCursor): CodePoints {
  const character = cursor.characters[cursor.at++]!;
  if (character !== "\\") return charactersOf(character);
  if (cursor.characters[cursor.at] === "b") {
    cursor.at++;
    return point(8);
  }
  return readEscapedSet(cursor);
}

function isSingle(set: CodePoints): boolean {
  return set.length === 2 && set[0] === set[1];
}

/** The set behind a backslash. */
export function readEscapedSet(cursor: PatternCursor): CodePoints {
  const letter = cursor.characters[cursor.at++]!;
  if (Object.hasOwn(CLASSES, letter)) return CLASSES[letter]!;
  if (Object.hasOwn(CONTROLS, letter)) return point(CONTROLS[letter]!);
  const rest = cursor.characters.slice(cursor.at, cursor.at + 80).join("");
  const found = ESCAPES[letter]?.exec(rest);
  if (!found) return charactersOf(letter);
  cursor.at += [...found[0]].length;
  if (letter === "c") return point(found[0].charCodeAt(0) % 32);
  if (letter === "p" || letter === "P") return propertySet(`\\${letter}${found[0]}`);
  const [first, second] = [...found.slice(1)].filter((digits) => digits !== undefined)
    .map((digits) => parseInt(digits, 16));
  return point(second === undefined ? first! : 0x10000 + (first! - 0xd800 << 10) + second - 0xdc00);
}

const ESCAPES: Readonly<Record<string, RegExp>> = {
  c: /^[A-Za-z]/,
  x: /^([0-9a-fA-F]{2})/,
  u: /^(?:\{([0-9a-fA-F]+)\}|([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|([0-9a-fA-F]{4}))/,
  p: /^\{[^}]*\}/,
  P: /^\{[^}]*\}/,
};

const properties = new Map<string, CodePoints>();

// What the engine's own Unicode tables say, asked once for every code point.
function propertySet(escape: string): CodePoints {
  let set = properties.get(escape);
  if (!set) {
    const pattern = new RegExp(`^${escape}$`, "u");
    const ranges: [number, number][] = [];
    let low = -1;
    for (let code = 0; code <= LAST + 1; code++) {
      const isIn = code <= LAST && pattern.test(String.fromCodePoint(code));
      if (isIn && low < 0) low = code;
      if (!isIn && low >= 0) {
        ranges.push([low, code - 1]);
        low = -1;
      }
    }
    properties.set(escape, set = codePoints(...ranges));
  }
  return set;
}
