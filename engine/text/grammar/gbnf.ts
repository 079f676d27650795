// GBNF, llama.cpp's notation for grammars (grammars/README.md there): rules `name ::= …` with texts, classes of
// characters, groups, alternatives and repetitions. A rule that can begin with itself before it has read anything would
// be read for ever, and is refused by its name.

import { FormatError } from "../../errors.ts";
import { ALL, type CodePoints, codePoints, complement } from "./code_points.ts";
import type { Grammar } from "./grammar.ts";
import { compileNode, type Node, type Rule } from "./gbnf_compile.ts";
import { refuseEndless, refuseLeftRecursion } from "./gbnf_checks.ts";
import { withinStack } from "./nesting.ts";
import { oneOf, word } from "./nfa.ts";

interface Cursor {
  readonly source: string;
  at: number;
  readonly rules: Map<string, Rule>;
}

/**
 * The grammar of a GBNF text; its first rule is `root`.
 *
 * @throws {FormatError} With the line, if it is none, names a rule that is not there, or begins a rule with itself.
 * @throws {UnsupportedError} If it is too deep or large.
 */
export function compileGbnf(source: string): Grammar {
  return withinStack("a grammar", () => compile(source));
}

function compile(source: string): Grammar {
  const cursor: Cursor = { source, at: 0, rules: new Map() };
  for (skip(cursor, true); cursor.at < source.length; skip(cursor, true)) readRule(cursor);
  for (const rule of cursor.rules.values()) {
    if (!rule.body) throw new FormatError(`the grammar has no rule ${rule.name}`);
  }
  const root = cursor.rules.get("root");
  if (!root) throw new FormatError("the grammar has no rule root");
  refuseLeftRecursion(cursor.rules);
  refuseEndless(root, cursor.rules);
  return { root: compileNode(root) };
}

function fail({ source, at }: Cursor, message: string): never {
  const line = source.slice(0, at).split("\n").length;
  throw new FormatError(message, { place: `grammar line ${line}` });
}

// Blanks and comments; within a rule, line ends only where it goes on for certain.
function skip(cursor: Cursor, withLines: boolean): void {
  const pattern = withLines ? /(?:\s|#[^\n]*)*/y : /(?:[ \t]|#[^\n]*)*/y;
  pattern.lastIndex = cursor.at;
  cursor.at += pattern.exec(cursor.source)![0].length;
}

function takeName(cursor: Cursor): string | undefined {
  const pattern = /[a-zA-Z0-9-]+/y;
  pattern.lastIndex = cursor.at;
  const found = pattern.exec(cursor.source)?.[0];
  if (found) cursor.at += found.length;
  return found;
}

function take(cursor: Cursor, text: string): boolean {
  if (!cursor.source.startsWith(text, cursor.at)) return false;
  cursor.at += text.length;
  return true;
}

function ruleOf({ rules }: Cursor, name: string): Rule {
  let rule = rules.get(name);
  if (!rule) rules.set(name, rule = { kind: "rule", name, body: undefined });
  return rule;
}

function readRule(cursor: Cursor): void {
  const name = takeName(cursor) ?? fail(cursor, "a rule begins with its name");
  skip(cursor, false);
  if (!take(cursor, "::=")) fail(cursor, `rule ${name} has no ::=`);
  skip(cursor, true);
  const rule = ruleOf(cursor, name);
  if (rule.body) fail(cursor, `rule ${name} is there twice`);
  rule.body = readAlternatives(cursor, false);
  skip(cursor, false);
  if (cursor.at < cursor.source.length && !/[\r\n]/.test(cursor.source[cursor.at]!)) {
    fail(cursor, `rule ${name} does not go on with ${JSON.stringify(cursor.source[cursor.at])}`);
  }
}

function readAlternatives(cursor: Cursor, isNested: boolean): Node {
  const items = [readSequence(cursor, isNested)];
  for (;;) {
    const { at } = cursor;
    skip(cursor, true);
    if (!take(cursor, "|")) {
      if (!isNested) cursor.at = at;
      break;
    }
    skip(cursor, true);
    items.push(readSequence(cursor, isNested));
  }
  return items.length === 1 ? items[0]! : { kind: "choice", items };
}

function readSequence(cursor: Cursor, isNested: boolean): Node {
  const items: Node[] = [];
  for (;;) {
    skip(cursor, isNested);
    const item = readItem(cursor);
    if (!item) break;
    items.push(readRepeat(cursor, item));
  }
  return items.length === 1 ? items[0]! : { kind: "sequence", items };
}

function readItem(cursor: Cursor): Node | undefined {
  if (take(cursor, '"')) return { kind: "regular", regular: word(readText(cursor)) };
  if (take(cursor, "[")) return { kind: "regular", regular: oneOf(readClass(cursor)) };
  if (take(cursor, ".")) return { kind: "regular", regular: oneOf(ALL) };
  if (take(cursor, "(")) {
    const inner = readAlternatives(cursor, true);
    skip(cursor, true);
    return take(cursor, ")") ? inner : fail(cursor, "a group is not closed");
  }
  const name = takeName(cursor);
  return name === undefined ? undefined : ruleOf(cursor, name);
}

function readRepeat(cursor: Cursor, item: Node): Node {
  let result = item;
  for (;;) {
    skip(cursor, false);
    const [min, max] = take(cursor, "*")
      ? [0, Infinity]
      : take(cursor, "+")
      ? [1, Infinity]
      : take(cursor, "?")
      ? [0, 1]
      : readBraces(cursor);
    if (min === undefined) return result;
    if (min > max!) fail(cursor, `a repetition has bounds ${min} and ${max}`);
    result = { kind: "repeat", item: result, min, max: max! };
  }
}

function readBraces(cursor: Cursor): number[] {
  const pattern = /\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}/y;
  pattern.lastIndex = cursor.at;
  const found = pattern.exec(cursor.source);
  if (!found) {
    if (cursor.source[cursor.at] === "{") fail(cursor, "a repetition is {n}, {n,}, {,n} or {n,m}");
    return [];
  }
  cursor.at += found[0].length;
  const min = Number(found[1] || 0);
  return [min, found[2] === "" ? min : found[3] === "" ? Infinity : Number(found[3])];
}

function readText(cursor: Cursor): string {
  let text = "";
  while (!take(cursor, '"')) text += String.fromCodePoint(readCharacter(cursor));
  return text;
}

function readClass(cursor: Cursor): CodePoints {
  const isNegated = take(cursor, "^");
  const ranges: [number, number][] = [];
  while (!take(cursor, "]")) {
    const low = readCharacter(cursor);
    const isRange = cursor.source[cursor.at] === "-" && cursor.source[cursor.at + 1] !== "]";
    if (isRange) cursor.at++;
    const high = isRange ? readCharacter(cursor) : low;
    if (high < low) fail(cursor, "a range of characters ends before it begins");
    ranges.push([low, high]);
  }
  const set = codePoints(...ranges);
  return isNegated ? complement(set) : set;
}

const LETTERS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7, b: 8 };
const DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

function readCharacter(cursor: Cursor): number {
  const code = cursor.source.codePointAt(cursor.at);
  if (code === undefined) return fail(cursor, "a text or class is not closed");
  cursor.at += String.fromCodePoint(code).length;
  if (code !== 0x5c) return code;
  const letter = cursor.source[cursor.at++] ?? fail(cursor, "an escape is cut off");
  const digits = DIGITS[letter];
  if (digits === undefined) return LETTERS[letter] ?? letter.codePointAt(0)!;
  const hex = cursor.source.slice(cursor.at, cursor.at + digits);
  const value = /^[0-9a-fA-F]+$/.test(hex) && hex.length === digits ? parseInt(hex, 16) : Infinity;
  if (value > 0x10ffff) fail(cursor, `\\${letter}${hex} is no character`);
  cursor.at += digits;
  return value;
}
