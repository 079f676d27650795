// Regular expressions of ECMAScript (ECMA-262, 22.2), by code points as with the flag `u`, as regular languages. What a
// finite automaton has no place for is refused by name: references to groups, word boundaries, and assertions that look
// elsewhere than from the two ends of the text. Those at the ends are languages of their own, which all must hold.

import { FormatError, UnsupportedError } from "../../errors.ts";
import { type PatternCursor, readClass, readEscapedSet } from "./character_class.ts";
import { charactersOf, complement } from "./code_points.ts";
import type { Part } from "./dfa.ts";
import { ANY, choice, oneOf, type Regular, repeat, sequence } from "./nfa.ts";

/** An assertion about what is ahead of a place, or behind. */
interface Look {
  readonly kind: "look";
  readonly isBehind: boolean;
  readonly isNegated: boolean;
  readonly item: Regular;
}

type Term = Regular | Look;

const LINE_END = charactersOf("\n\r\u2028\u2029");

/** Most patterns that are kept. */
const MOST_KEPT = 512;

const kept = new Map<string, readonly Part[]>();

/**
 * The texts in which a pattern is found, as parts that must all hold; the same ones for the same pattern, so that what is
 * known of them is found again.
 *
 * @throws {FormatError} If it is no regular expression. @throws {UnsupportedError} If it is more than a regular language.
 */
export function parsePattern(source: string): readonly Part[] {
  let parts = kept.get(source);
  if (!parts) {
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(source, parts = readPattern(source));
  }
  return parts;
}

function readPattern(source: string): readonly Part[] {
  checkSyntax(source);
  const cursor: PatternCursor = { source, characters: [...source], at: 0 };
  const alternatives = readAlternatives(cursor);
  if (alternatives.length === 1) return partsOf(alternatives[0]!, cursor);
  const items = alternatives.map((terms) => sequence(...plain(terms, cursor)));
  return [{ regular: sequence(ANY, choice(...items), ANY) }];
}

/** The texts that a pattern matches as a whole. */
export function parseWhole(source: string): readonly Part[] {
  checkSyntax(source);
  return parsePattern(`^(?:${source})$`);
}

/** Most characters of a pattern that a message shows. */
const MOST_SHOWN = 200;

/** A pattern in quotes, its beginning where it is long. */
export function quoted(source: string): string {
  return JSON.stringify(
    source.length <= MOST_SHOWN ? source : `${source.slice(0, MOST_SHOWN)}…`,
  );
}

function checkSyntax(source: string): void {
  try {
    new RegExp(source, "u");
  } catch {
    try {
      new RegExp(source);
    } catch (cause) {
      // "Invalid regular expression: /[0-9/: Unterminated character class"
      const reason = (cause as Error).message.split(": ").at(-1)!;
      throw new FormatError(`${quoted(source)} is no regular expression: ${reason}`, { cause });
    }
  }
}

// What stands at the two ends may look.
function partsOf(terms: readonly Term[], cursor: PatternCursor): Part[] {
  const isStart = (term: Term) => term.kind === "start";
  const isEnd = (term: Term) => term.kind === "end";
  const first = terms.findIndex((term) => term.kind !== "look" && !isStart(term));
  const head = first < 0 ? terms : terms.slice(0, first);
  const behind = terms.slice(head.length);
  const last = behind.findLastIndex((term) => term.kind !== "look" && !isEnd(term));
  const tail = behind.slice(last + 1);
  const parts: Part[] = [];
  const ends: [readonly Term[], boolean][] = [[head, false], [tail, true]];
  for (const [list, isTail] of ends) {
    for (const term of list) {
      if (term.kind !== "look") continue;
      if (term.isBehind !== isTail || !list.some(isTail ? isEnd : isStart)) refuse(cursor, LOOK);
      const { item, isNegated } = term;
      parts.push({ regular: isTail ? sequence(ANY, item) : sequence(item, ANY), isNegated });
    }
  }
  const isPlain = (term: Term): term is Regular => term.kind !== "look";
  const rest = [...head.filter(isPlain), ...plain(behind.slice(0, last + 1), cursor)];
  return [{ regular: sequence(ANY, ...rest, ...tail.filter(isPlain), ANY) }, ...parts];
}

const LOOK = "an assertion that does not look from an end of the text";

function plain(terms: readonly Term[], cursor: PatternCursor): Regular[] {
  return terms.map((term) => term.kind === "look" ? refuse(cursor, LOOK) : term);
}

function refuse({ source }: PatternCursor, what: string): never {
  throw new UnsupportedError(`the pattern ${quoted(source)} has ${what}`);
}

function readAlternatives(cursor: PatternCursor): Term[][] {
  const alternatives: Term[][] = [[]];
  while (cursor.at < cursor.characters.length && cursor.characters[cursor.at] !== ")") {
    if (take(cursor, "|")) alternatives.push([]);
    else alternatives.at(-1)!.push(readTerm(cursor));
  }
  return alternatives;
}

function readTerm(cursor: PatternCursor): Term {
  const term = readAtom(cursor);
  const bounds = readQuantifier(cursor);
  if (!bounds) return term;
  if (term.kind === "look") return refuse(cursor, LOOK);
  return repeat(term, bounds);
}

function readAtom(cursor: PatternCursor): Term {
  const character = cursor.characters[cursor.at++]!;
  switch (character) {
    case "^":
      return { kind: "start" };
    case "$":
      return { kind: "end" };
    case ".":
      return oneOf(complement(LINE_END));
    case "(":
      return readGroup(cursor);
    case "[":
      return oneOf(readClass(cursor));
    case "\\":
      return readEscape(cursor);
    default:
      return oneOf(charactersOf(character));
  }
}

function readEscape(cursor: PatternCursor): Regular {
  const next = cursor.characters[cursor.at]!;
  if (next === "b" || next === "B") refuse(cursor, "a word boundary");
  if (/[1-9]/.test(next) || next === "k" && cursor.source.includes("(?<")) {
    refuse(cursor, "a reference to a group");
  }
  return oneOf(readEscapedSet(cursor));
}

function readGroup(cursor: PatternCursor): Term {
  const look = takeOneOf(cursor, ["?=", "?!", "?<=", "?<!"]);
  if (!look && !takeOneOf(cursor, ["?:"])) {
    if (takeOneOf(cursor, ["?<"])) {
      while (!take(cursor, ">")) cursor.at++;
    } else if (cursor.characters[cursor.at] === "?") refuse(cursor, "a modifier");
  }
  const items = readAlternatives(cursor).map((terms) => sequence(...plain(terms, cursor)));
  take(cursor, ")");
  const item = items.length === 1 ? items[0]! : choice(...items);
  if (!look) return item;
  return { kind: "look", isBehind: look[1] === "<", isNegated: look.endsWith("!"), item };
}

function readQuantifier(cursor: PatternCursor): readonly [min: number, max: number] | undefined {
  const bounds = take(cursor, "*")
    ? [0, Infinity] as const
    : take(cursor, "+")
    ? [1, Infinity] as const
    : take(cursor, "?")
    ? [0, 1] as const
    : readBraces(cursor);
  if (bounds) take(cursor, "?"); // which of the ways is preferred makes no other language
  return bounds;
}

function readBraces(cursor: PatternCursor): readonly [number, number] | undefined {
  if (cursor.characters[cursor.at] !== "{") return undefined;
  const rest = cursor.characters.slice(cursor.at, cursor.at + 40).join("");
  const found = /^\{(\d+)(,(\d*))?\}/.exec(rest);
  if (!found) return undefined;
  cursor.at += found[0].length;
  const min = Number(found[1]);
  return [min, found[2] === undefined ? min : found[3] === "" ? Infinity : Number(found[3])];
}

function take(cursor: PatternCursor, character: string): boolean {
  if (cursor.characters[cursor.at] !== character) return false;
  cursor.at++;
  return true;
}

function takeOneOf(cursor: PatternCursor, texts: readonly string[]): string | undefined {
  const found = texts.find((text) =>
    [...text].every((character, i) => cursor.characters[cursor.at + i] === character)
  );
  if (found !== undefined) cursor.at += found.length;
  return found;
}
