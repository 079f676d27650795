// Calls as Gemma's templates write them: `call:name{key:value,…}`, whose keys have no quotes and whose texts
// stand between marks of their own; and calls in the words of Python, as older prompts ask for. Both are
// given out when they are whole, since JSON cannot be told before.

import type { BodyReader } from "./tool_call.ts";

/** How a notation differs from JSON. */
interface Notation {
  /** What opens and closes a text, longest first. */
  readonly quotes: readonly string[];
  /** Between a key and its value. */
  readonly colon: string;
}

/** `call:name{key:<escape>text<escape>,n:1}`. @param quote What stands around texts. */
export function braceCalls(quote: string): BodyReader {
  return (body) => {
    const head = /call:\s*(?<name>[^\s{(]+)\s*\{/.exec(body);
    if (!head) return [];
    const name = head.groups!.name!;
    const cursor = { text: body, at: head.index + head[0].length };
    const value = readMembers(cursor, { quotes: [quote, '"'], colon: ":" }, "}");
    return [{ name, argumentsText: value === undefined ? "" : JSON.stringify(value) }];
  };
}

/** `name(key=value, …)`, also within `print(…)` and behind a module's name. */
export const readPythonCalls: BodyReader = (body) => {
  const text = body.trim().replace(/^print\(([^]*)\)$/, "$1");
  const head = /^(?:\w+\.)*(?<name>\w+)\s*\(/.exec(text);
  if (!head) return [];
  const cursor = { text, at: head[0].length };
  const value = readMembers(cursor, { quotes: ['"""', '"', "'"], colon: "=" }, ")");
  const { name = "" } = head.groups!;
  return [{ name, argumentsText: value === undefined ? "" : JSON.stringify(value) }];
};

interface Cursor {
  readonly text: string;
  at: number;
}

// Undefined wherever the text ends too early or is something else.
function readMembers(
  cursor: Cursor,
  notation: Notation,
  close: string,
): Record<string, unknown> | undefined {
  const members: Record<string, unknown> = {};
  for (;;) {
    skip(cursor);
    if (take(cursor, close)) return members;
    const key = notation.quotes.map((quote) =>
      quoted(cursor, quote)
    ).find((it) => it !== undefined) ??
      match(cursor, /[\w.-]+/y);
    skip(cursor);
    // Values of a dictionary of Python stand behind colons too.
    if (key === undefined || !(take(cursor, notation.colon) || take(cursor, ":"))) return undefined;
    const value = readValue(cursor, notation);
    if (value === undefined) return undefined;
    members[key] = value.it;
  }
}

function readValue(cursor: Cursor, notation: Notation): { readonly it: unknown } | undefined {
  skip(cursor);
  for (const quote of notation.quotes) {
    const text = quoted(cursor, quote);
    if (text !== undefined) return { it: text };
  }
  if (take(cursor, "{")) {
    const it = readMembers(cursor, notation, "}");
    return it && { it };
  }
  if (take(cursor, "[")) {
    const items: unknown[] = [];
    for (;;) {
      skip(cursor);
      if (take(cursor, "]")) return { it: items };
      const item = readValue(cursor, notation);
      if (!item) return undefined;
      items.push(item.it);
    }
  }
  const word = match(cursor, /[^,\]})\s]+/y);
  return word === undefined ? undefined : { it: wordValue(word) };
}

function wordValue(word: string): unknown {
  const constant = { true: true, false: false, null: null, none: null }[word.toLowerCase()];
  if (constant !== undefined) return constant;
  return Number.isNaN(Number(word)) ? word : Number(word);
}

function quoted(cursor: Cursor, quote: string): string | undefined {
  if (!cursor.text.startsWith(quote, cursor.at)) return undefined;
  const start = cursor.at + quote.length;
  const isEscaped = quote.length === 1 || quote === '"""';
  let end = cursor.text.indexOf(quote, start);
  while (isEscaped && end > 0 && /(?<!\\)(?:\\\\)*\\$/.test(cursor.text.slice(start, end))) {
    end = cursor.text.indexOf(quote, end + 1);
  }
  if (end < 0) return undefined;
  cursor.at = end + quote.length;
  const text = cursor.text.slice(start, end);
  const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };
  return isEscaped ? text.replace(/\\([^])/g, (_, char: string) => escapes[char] ?? char) : text;
}

function skip(cursor: Cursor): void {
  match(cursor, /[\s,]+/y);
}

function take(cursor: Cursor, text: string): boolean {
  if (!cursor.text.startsWith(text, cursor.at)) return false;
  cursor.at += text.length;
  return true;
}

function match(cursor: Cursor, expression: RegExp): string | undefined {
  expression.lastIndex = cursor.at;
  const found = expression.exec(cursor.text)?.[0];
  if (found !== undefined) cursor.at += found.length;
  return found;
}
