// Python's methods of texts, lists and dicts that a template may call: one row for each. Methods that
// change their object are refused, as Jinja's immutable sandbox does. Positions count code points.
// `format` stands in access.ts, which it needs.

import { bind, type Call, integerArgument, textArgument } from "./call_arguments.ts";
import { BLANKS, lengthOf } from "./characters.ts";
import { fail } from "./failure.ts";
import {
  capitalizeText,
  foldText,
  isLowerText,
  isTitle,
  isUpperText,
  swapCase,
  titleText,
} from "./text_case.ts";
import {
  areEqual,
  type Dict,
  dictKey,
  isList,
  isTrue,
  isTuple,
  isUndefined,
  iterate,
  listOfKind,
  orElse,
  tupleValue,
  type Value,
} from "./values.ts";

/** A method of a type. */
export type Method<T> = (self: T, call: Call) => Value;

const SPACE = new RegExp(`[${BLANKS}]`, "u");
const WORDS = new RegExp(`[^${BLANKS}]+`, "gu");
// deno-lint-ignore no-control-regex
const LINE_END = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;

/** Takes characters off the ends: blanks, or those of `set`. */
export function strip(
  text: string,
  { set, left, right }: { readonly set: Value; readonly left: boolean; readonly right: boolean },
): string {
  const chars = Array.from(text);
  const among = isUndefined(set) || set === null ? undefined : new Set(textArgument(set));
  const goes = (char: string) => among === undefined ? SPACE.test(char) : among.has(char);
  let start = 0;
  let end = chars.length;
  if (left) { while (start < end && goes(chars[start])) start++; }
  if (right) { while (end > start && goes(chars[end - 1])) end--; }
  return chars.slice(start, end).join("");
}

function stripping(sides: { readonly left: boolean; readonly right: boolean }): Method<string> {
  return (text, call) => strip(text, { set: bind(call, "chars")[0], ...sides });
}

/** `str.strip`. */
export const stripText: Method<string> = stripping({ left: true, right: true });

function splitText(text: string, call: Call, fromRight: boolean): Value {
  const [separator, most] = bind(call, "sep", "maxsplit");
  const asked = integerArgument(most, -1);
  const limit = asked < 0 ? Infinity : asked;
  call.budget.spend(text.length);
  if (isUndefined(separator) || separator === null) return splitBlanks(text, limit, fromRight);
  const mark = textArgument(separator);
  if (mark === "") return fail("the separator is empty");
  const parts = text.split(mark);
  if (parts.length <= limit + 1) return parts;
  const cut = fromRight ? parts.length - limit : limit;
  return fromRight
    ? [parts.slice(0, cut).join(mark), ...parts.slice(cut)]
    : [...parts.slice(0, cut), parts.slice(cut).join(mark)];
}

/** Words; beyond the limit the rest stays as it is, with the blanks at its far end. */
function splitBlanks(text: string, limit: number, fromRight: boolean): string[] {
  const words = [...text.matchAll(WORDS)];
  if (words.length <= limit) return words.map(([word]) => word);
  const cut = fromRight ? words.length - limit : limit;
  if (fromRight) {
    const last = words[cut - 1];
    const rest = text.slice(0, last.index + last[0].length);
    return [rest, ...words.slice(cut).map(([word]) => word)];
  }
  return [...words.slice(0, cut).map(([word]) => word), text.slice(words[cut].index)];
}

/** A place that may count from the end. */
function placeIn(length: number, value: Value, fallback: number): number {
  const at = integerArgument(value, fallback);
  return at < 0 ? Math.max(0, at + length) : at;
}

/** The part of a text that `start` and `end` leave, and where it begins; nothing where they cross. */
function partOf(
  text: string,
  start: Value,
  end: Value,
): { part: string; from: number } | undefined {
  if (isUndefined(start) && isUndefined(end)) return { part: text, from: 0 };
  const chars = Array.from(text);
  const { length } = chars;
  const from = start === null ? 0 : placeIn(length, start, 0);
  const to = end === null ? length : Math.min(length, placeIn(length, end, length));
  return from > to ? undefined : { part: chars.slice(from, to).join(""), from };
}

function hasAffix(test: (text: string, affix: string) => boolean): Method<string> {
  return (text, call) => {
    const [affixes, start, end] = bind(call, "affix", "start", "end");
    const part = partOf(text, start, end)?.part;
    const holds = (affix: Value) => {
      const wanted = textArgument(affix);
      return part !== undefined && test(part, wanted);
    };
    return isList(affixes) && isTuple(affixes) ? affixes.some(holds) : holds(affixes);
  };
}

/** `find` and its kin; `isNeeded` refuses where nothing is found. */
function finding(fromRight: boolean, isNeeded: boolean): Method<string> {
  return (text, call) => {
    const [sub, start, end] = bind(call, "sub", "start", "end");
    const wanted = textArgument(sub);
    const within = partOf(text, start, end);
    const part = within?.part ?? "";
    const at = within === undefined
      ? -1
      : fromRight
      ? part.lastIndexOf(wanted)
      : part.indexOf(wanted);
    if (at < 0) return isNeeded ? fail("substring not found") : -1;
    return within!.from + lengthOf(part.slice(0, at));
  };
}

function countOf(text: string, call: Call): number {
  const [sub, start, end] = bind(call, "sub", "start", "end");
  const wanted = textArgument(sub);
  const part = partOf(text, start, end)?.part;
  if (part === undefined) return 0;
  return wanted === "" ? lengthOf(part) + 1 : part.split(wanted).length - 1;
}

function partition(fromRight: boolean): Method<string> {
  return (text, call) => {
    const separator = textArgument(bind(call, "sep")[0]);
    if (separator === "") return fail("the separator is empty");
    const at = fromRight ? text.lastIndexOf(separator) : text.indexOf(separator);
    if (at < 0) return tupleValue(fromRight ? ["", "", text] : [text, "", ""]);
    return tupleValue([text.slice(0, at), separator, text.slice(at + separator.length)]);
  };
}

/** Where the text stands in a width. */
export function justify(
  text: string,
  { call, place }: { readonly call: Call; readonly place: "left" | "right" | "center" },
): string {
  const [size, filling] = bind(call, "width", "fillchar");
  const width = integerArgument(size);
  const fill = textArgument(filling, " ");
  if (lengthOf(fill) !== 1) return fail("the fill character must be exactly one character long");
  const missing = Math.max(0, width - lengthOf(text));
  call.budget.spend(missing);
  // CPython's rounding of a center.
  const left = place === "left"
    ? 0
    : place === "right"
    ? missing
    : Math.floor(missing / 2) + (missing & width & 1);
  return fill.repeat(left) + text + fill.repeat(missing - left);
}

function fillZeros(text: string, call: Call): string {
  const missing = Math.max(0, integerArgument(bind(call, "width")[0]) - lengthOf(text));
  call.budget.spend(missing);
  const sign = /^[-+]/.test(text) ? text[0] : "";
  return sign + "0".repeat(missing) + text.slice(sign.length);
}

function expandTabs(text: string, call: Call): string {
  const size = integerArgument(bind(call, "tabsize")[0], 8);
  let column = 0;
  let written = "";
  for (const char of text) {
    if (char === "\t") {
      const blanks = size > 0 ? size - column % size : 0;
      call.budget.spend(blanks);
      written += " ".repeat(blanks);
      column += blanks;
    } else {
      written += char;
      column = char === "\n" || char === "\r" ? 0 : column + 1;
    }
  }
  return written;
}

/** `str.replace`. */
export function replaceText(text: string, call: Call): string {
  const [from, to, most] = bind(call, "old", "new", "count");
  const old = textArgument(from);
  const fresh = textArgument(to);
  const limit = integerArgument(most, -1);
  const parts = old === "" ? ["", ...Array.from(text), ""] : text.split(old);
  const used = limit < 0 ? parts.length - 1 : Math.min(limit, parts.length - 1);
  call.budget.spend(text.length + used * fresh.length);
  const head = parts.slice(0, used + 1).join(fresh);
  return used === parts.length - 1 ? head : head + old + parts.slice(used + 1).join(old);
}

/** `str.splitlines`. */
export function splitLines(text: string, keepEnds: boolean): string[] {
  const pieces = text.split(new RegExp(`(${LINE_END.source})`));
  const lines: string[] = [];
  for (let i = 0; i < pieces.length; i += 2) {
    const end = pieces[i + 1];
    if (pieces[i] !== "" || end !== undefined) lines.push(pieces[i] + (keepEnds ? end ?? "" : ""));
  }
  return lines;
}

/** Classes of Unicode take long to read, and few templates ask for one: patterns are made when they are used. */
function allAre(pattern: () => RegExp): Method<string> {
  return (text) => pattern().test(text);
}

const DIGIT = "\\p{Nd}²³¹⁰⁴-⁹₀-₉①-⑨⑴-⑼⒈-⒐⓪⓵-⓽⓿❶-❾➀-➈➊-➒";

/** Methods of texts. */
export const TEXT_METHODS: ReadonlyMap<string, Method<string>> = new Map<string, Method<string>>([
  ["capitalize", (text) => capitalizeText(text)],
  ["casefold", (text) => foldText(text)],
  ["center", (text, call) => justify(text, { call, place: "center" })],
  ["count", countOf],
  ["endswith", hasAffix((text, affix) => text.endsWith(affix))],
  ["expandtabs", expandTabs],
  ["find", finding(false, false)],
  ["index", finding(false, true)],
  ["isalnum", allAre(() => /^[\p{L}\p{N}]+$/u)],
  ["isalpha", allAre(() => /^\p{L}+$/u)],
  ["isascii", allAre(() => /^[\0-\x7f]*$/)],
  ["isdecimal", allAre(() => /^\p{Nd}+$/u)],
  ["isdigit", allAre(() => new RegExp(`^[${DIGIT}]+$`, "u"))],
  ["isidentifier", allAre(() => /^[\p{XID_Start}_]\p{XID_Continue}*$/u)],
  ["islower", (text) => isLowerText(text)],
  ["isnumeric", allAre(() => /^\p{N}+$/u)],
  ["isprintable", allAre(() => /^(?: |[^\p{C}\p{Z}])*$/u)],
  ["isspace", (text) => text !== "" && strip(text, { set: null, left: true, right: false }) === ""],
  ["istitle", (text) => isTitle(text)],
  ["isupper", (text) => isUpperText(text)],
  [
    "join",
    (text, call) => joinTexts(iterate(bind(call, "iterable")[0]), { separator: text, call }),
  ],
  ["ljust", (text, call) => justify(text, { call, place: "left" })],
  ["lower", (text) => text.toLowerCase()],
  ["lstrip", stripping({ left: true, right: false })],
  ["partition", partition(false)],
  ["removeprefix", (text, call) => {
    const prefix = textArgument(bind(call, "prefix")[0]);
    return text.startsWith(prefix) ? text.slice(prefix.length) : text;
  }],
  ["removesuffix", (text, call) => {
    const suffix = textArgument(bind(call, "suffix")[0]);
    return suffix !== "" && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
  }],
  ["replace", replaceText],
  ["rfind", finding(true, false)],
  ["rindex", finding(true, true)],
  ["rjust", (text, call) => justify(text, { call, place: "right" })],
  ["rpartition", partition(true)],
  ["rsplit", (text, call) => splitText(text, call, true)],
  ["rstrip", stripping({ left: false, right: true })],
  ["split", (text, call) => splitText(text, call, false)],
  ["splitlines", (text, call) => splitLines(text, isTrue(bind(call, "keepends")[0]))],
  ["startswith", hasAffix((text, affix) => text.startsWith(affix))],
  ["strip", stripText],
  ["swapcase", (text) => swapCase(text)],
  ["title", (text) => titleText(text)],
  ["upper", (text) => text.toUpperCase()],
  ["zfill", fillZeros],
]);

/** Joins texts as `str.join` does. */
export function joinTexts(
  items: readonly Value[],
  { separator, call }: { readonly separator: string; readonly call: Call },
): string {
  const texts = items.map((item) => textArgument(item));
  call.budget.spend(texts.reduce((sum, text) => sum + text.length + separator.length, 0));
  return texts.join(separator);
}

/** Methods of lists and, but for `copy`, of tuples and ranges. */
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
    const [wanted, start, stop] = bind(call, "value", "start", "stop");
    const { length } = list;
    const [from, to] = [placeIn(length, start, 0), placeIn(length, stop, length)];
    const at = list.findIndex((item, i) => i >= from && i < to && areEqual(item, wanted));
    return at < 0 ? fail("the value is not in the list") : at;
  }],
]);

/** Methods of dicts. */
export const DICT_METHODS: ReadonlyMap<string, Method<Dict>> = new Map<string, Method<Dict>>([
  ["copy", (dict) => new Map(dict)],
  ["get", (dict, call) => {
    const [key, fallback] = bind(call, "key", "default");
    const isGiven = call.args.length > 1 || call.named.has("default");
    return orElse(dict.get(dictKey(key)), () => isGiven ? fallback : null);
  }],
  ["items", (dict) => listOfKind("dict_items", { items: Array.from(dict, tupleValue) })],
  ["keys", (dict) => listOfKind("dict_keys", { items: dict.keys() })],
  ["values", (dict) => listOfKind("dict_values", { items: dict.values() })],
]);
