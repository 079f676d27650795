// Python's methods of texts, lists and dicts that a template may call: one row for each. Methods that
// change their object are refused, as Jinja's immutable sandbox does. Positions count code points.
// Blanks are Unicode's; Python counts the four separators U+001C to U+001F in, which is left out.

import { bind, type Call, integerArgument, textArgument } from "./call_arguments.ts";
import { fail } from "./failure.ts";
import {
  areEqual,
  type Dict,
  dictKey,
  isList,
  isUndefined,
  iterate,
  tupleValue,
  type Value,
} from "./values.ts";

type Method<T> = (self: T, call: Call) => Value;

const SPACE = /\p{White_Space}/u;
const SPACE_RUN = /\p{White_Space}+/u;
const LINE_END = /\r\n|[\n\r\v\f\x85\u2028\u2029]/;

/** Characters of a text, by code point. */
function characters(text: string): readonly string[] {
  return Array.from(text);
}

/** Number of code points. */
export function lengthOf(text: string): number {
  let length = text.length;
  for (let i = 0; i + 1 < text.length; i++) {
    const isPair = (text.charCodeAt(i) & 0xfc00) === 0xd800 &&
      (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00;
    if (isPair) length--;
  }
  return length;
}

/** Takes characters off the ends: blanks, or those of `set`. */
export function strip(text: string, set: Value, left: boolean, right: boolean): string {
  const chars = characters(text);
  const among = isUndefined(set) || set === null ? undefined : new Set(textArgument(set));
  const goes = (char: string) => among === undefined ? SPACE.test(char) : among.has(char);
  let start = 0;
  let end = chars.length;
  if (left) { while (start < end && goes(chars[start])) start++; }
  if (right) { while (end > start && goes(chars[end - 1])) end--; }
  return chars.slice(start, end).join("");
}

function splitText(text: string, call: Call, fromRight: boolean): Value {
  const [separator, most] = bind(call, "sep", "maxsplit");
  const limit = integerArgument(most, -1);
  call.budget.spend(text.length);
  const isBlank = isUndefined(separator) || separator === null;
  const parts = isBlank
    ? strip(text, null, true, true).split(SPACE_RUN).filter((part) => part !== "")
    : splitAt(text, textArgument(separator));
  if (limit < 0 || parts.length <= limit + 1) return parts;
  return isBlank
    ? splitBlanksLimited(text, limit, fromRight)
    : joinRest(parts, textArgument(separator), limit, fromRight);
}

function splitAt(text: string, separator: string): string[] {
  return separator === "" ? fail("the separator is empty") : text.split(separator);
}

function joinRest(parts: string[], separator: string, limit: number, fromRight: boolean): string[] {
  const cut = fromRight ? parts.length - limit : limit;
  return fromRight
    ? [parts.slice(0, cut).join(separator), ...parts.slice(cut)]
    : [...parts.slice(0, cut), parts.slice(cut).join(separator)];
}

function splitBlanksLimited(text: string, limit: number, fromRight: boolean): string[] {
  const parts: string[] = [];
  let rest = strip(text, null, true, true);
  while (parts.length < limit) {
    const runs = [...rest.matchAll(new RegExp(SPACE_RUN, "gu"))];
    const run = fromRight ? runs.at(-1) : runs[0];
    if (run === undefined) break;
    const before = rest.slice(0, run.index);
    const after = rest.slice(run.index + run[0].length);
    parts.push(fromRight ? after : before);
    rest = fromRight ? before : after;
  }
  return fromRight ? [rest, ...parts.reverse()] : [...parts, rest];
}

function hasAffix(affixes: Value, test: (affix: string) => boolean): boolean {
  return isList(affixes)
    ? affixes.some((affix) => test(textArgument(affix)))
    : test(textArgument(affixes));
}

/** `str.replace`. */
export function replaceText(text: string, call: Call): string {
  const [from, to, most] = bind(call, "old", "new", "count");
  const old = textArgument(from);
  const fresh = textArgument(to);
  const limit = integerArgument(most, -1);
  const parts = old === "" ? ["", ...characters(text), ""] : text.split(old);
  const used = limit < 0 ? parts.length - 1 : Math.min(limit, parts.length - 1);
  call.budget.spend(text.length + used * fresh.length);
  const head = parts.slice(0, used + 1).join(fresh);
  return used === parts.length - 1 ? head : head + old + parts.slice(used + 1).join(old);
}

/** `str.title`. */
function titleText(text: string): string {
  return text.toLowerCase().replace(/\p{L}+/gu, (word) => capitalizeText(word));
}

/** `str.capitalize`. */
export function capitalizeText(text: string): string {
  const [first = "", ...rest] = characters(text);
  return first.toUpperCase() + rest.join("").toLowerCase();
}

/** Position by code points of a position by UTF-16 units. */
function pointIndex(text: string, index: number): number {
  return index < 0 ? -1 : lengthOf(text.slice(0, index));
}

function splitLines(text: string, keepEnds: boolean): string[] {
  const pieces = text.split(new RegExp(`(${LINE_END.source})`));
  const lines: string[] = [];
  for (let i = 0; i < pieces.length; i += 2) {
    const end = pieces[i + 1];
    if (pieces[i] !== "" || end !== undefined) lines.push(pieces[i] + (keepEnds ? end ?? "" : ""));
  }
  return lines;
}

function allAre(pattern: RegExp): Method<string> {
  return (text) => pattern.test(text);
}

/** Methods of texts. */
export const TEXT_METHODS: ReadonlyMap<string, Method<string>> = new Map<string, Method<string>>([
  ["capitalize", (text) => capitalizeText(text)],
  ["count", (text, call) => text.split(textArgument(bind(call, "sub")[0])).length - 1],
  ["endswith", (text, call) => hasAffix(bind(call, "suffix")[0], (affix) => text.endsWith(affix))],
  ["find", (text, call) => pointIndex(text, text.indexOf(textArgument(bind(call, "sub")[0])))],
  ["isalnum", allAre(/^[\p{L}\p{N}]+$/u)],
  ["isalpha", allAre(/^\p{L}+$/u)],
  ["isdecimal", allAre(/^\p{Nd}+$/u)],
  ["isdigit", allAre(/^[\p{Nd}²³¹⁰⁴-⁹₀-₉]+$/u)],
  ["islower", (text) => /\p{L}/u.test(text) && text === text.toLowerCase()],
  ["isspace", (text) => text !== "" && strip(text, null, true, false) === ""],
  ["isupper", (text) => /\p{L}/u.test(text) && text === text.toUpperCase()],
  ["join", (text, call) => joinTexts(iterate(bind(call, "iterable")[0]), text, call)],
  ["lower", (text) => text.toLowerCase()],
  ["lstrip", (text, call) => strip(text, bind(call, "chars")[0], true, false)],
  ["removeprefix", (text, call) => {
    const prefix = textArgument(bind(call, "prefix")[0]);
    return text.startsWith(prefix) ? text.slice(prefix.length) : text;
  }],
  ["removesuffix", (text, call) => {
    const suffix = textArgument(bind(call, "suffix")[0]);
    return suffix !== "" && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
  }],
  ["replace", replaceText],
  ["rfind", (text, call) => pointIndex(text, text.lastIndexOf(textArgument(bind(call, "sub")[0])))],
  ["rsplit", (text, call) => splitText(text, call, true)],
  ["rstrip", (text, call) => strip(text, bind(call, "chars")[0], false, true)],
  ["split", (text, call) => splitText(text, call, false)],
  ["splitlines", (text, call) => splitLines(text, bind(call, "keepends")[0] === true)],
  [
    "startswith",
    (text, call) => hasAffix(bind(call, "prefix")[0], (affix) => text.startsWith(affix)),
  ],
  ["strip", (text, call) => strip(text, bind(call, "chars")[0], true, true)],
  ["title", (text) => titleText(text)],
  ["upper", (text) => text.toUpperCase()],
]);

/** Joins texts as `str.join` does. */
export function joinTexts(items: readonly Value[], separator: string, call: Call): string {
  const texts = items.map((item) => textArgument(item));
  call.budget.spend(texts.reduce((sum, text) => sum + text.length + separator.length, 0));
  return texts.join(separator);
}

/** Methods of lists. */
export const LIST_METHODS: ReadonlyMap<string, Method<readonly Value[]>> = new Map<
  string,
  Method<readonly Value[]>
>([
  ["copy", (list) => [...list]],
  ["count", (list, call) => {
    const [wanted] = bind(call, "value");
    return list.filter((item) => areEqual(item, wanted)).length;
  }],
  ["index", (list, call) => {
    const [wanted] = bind(call, "value");
    const at = list.findIndex((item) => areEqual(item, wanted));
    return at < 0 ? fail("the value is not in the list") : at;
  }],
]);

/** Methods of dicts. */
export const DICT_METHODS: ReadonlyMap<string, Method<Dict>> = new Map<string, Method<Dict>>([
  ["copy", (dict) => new Map(dict)],
  ["get", (dict, call) => {
    const [key, fallback] = bind(call, "key", "default");
    return dict.get(dictKey(key)) ?? (isUndefined(fallback) ? null : fallback);
  }],
  ["items", (dict) => Array.from(dict, tupleValue)],
  ["keys", (dict) => [...dict.keys()]],
  ["values", (dict) => [...dict.values()]],
]);

/** Methods that change their object, by the object's type. */
export const FORBIDDEN_METHODS: Readonly<Record<string, readonly string[]>> = {
  list: ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"],
  dict: ["clear", "pop", "popitem", "setdefault", "update"],
  str: ["format", "format_map"],
};
