// JSON of model files, more strictly than JSON.parse takes it: doubled keys, which JSON.parse hides by
// keeping the last one, are errors, and so is nesting deeper than anything a model file needs. Syntax
// itself is left to JSON.parse; the scan before it only follows strings and brackets.
//
// In one thing it takes more: Python's json writes NaN, Infinity and -Infinity, and files on the hub hold them, as a
// rule in keys that nobody needs. They are read as these numbers; who needs a number checks that it is finite.

import { FormatError } from "../errors.ts";
import { COUNT, OBJECT } from "../record.ts";
import type { MetadataValue, WeightFile } from "./source.ts";

const MAX_DEPTH = 64;
const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses UTF-8 bytes.
 *
 * @param file Name for messages.
 * @throws {FormatError} If they are not UTF-8, not JSON, nested deeper than 64, or a key is doubled.
 */
export function parseStrictJson(bytes: Uint8Array, file: string): MetadataValue {
  let text: string;
  try {
    // Text decoders refuse shared memory, hence the copy where it is shared.
    text = decoder.decode(bytes.buffer instanceof ArrayBuffer ? bytes : bytes.slice());
  } catch (cause) {
    throw new FormatError("its JSON is not UTF-8", { file, remedy: "Fetch it again", cause });
  }
  scanKeys(text, file);
  return parseJson(text, { file });
}

/**
 * Parses a text that another program wrote for a model, without looking for doubled keys: for files that nothing
 * about tensors stands in, and that may be long.
 *
 * @throws {FormatError} If it is not JSON; the message says where.
 */
export function parseJson(
  text: string,
  at: { readonly file: string; readonly place?: string },
): MetadataValue {
  try {
    return JSON.parse(text) as MetadataValue;
  } catch (cause) {
    const value = parseWithPython(text);
    if (value !== undefined) return value;
    // The reason quotes the text, line ends and all.
    const reason = (cause instanceof Error ? cause.message : String(cause)).replace(/\s+/g, " ");
    const [, position] = /position (\d+)/.exec(reason) ?? [];
    const isCut = /end of|unterminated/i.test(reason) || Number(position) >= text.length;
    throw new FormatError(`is not valid JSON (${reason})`, {
      ...at,
      remedy: isCut ? "It is cut short: fetch it again" : "Correct it there, or fetch it again",
      cause,
    });
  }
}

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/sy;
const LITERAL = /(?<![\w.+-])(?:-?Infinity|NaN)(?![\w.+-]|\s*:)/y;

/** The value of a text that is JSON but for Python's numbers; undefined if it holds none or is wrong elsewhere too. */
function parseWithPython(text: string): MetadataValue | undefined {
  // JSON has no number that is NaN, hence a string that stands nowhere in the text.
  let nan = "NaN";
  while (text.includes(nan)) nan += "~";
  let plain = "", from = 0;
  for (let i = 0; i < text.length; i++) {
    STRING.lastIndex = LITERAL.lastIndex = i;
    if (text[i] === '"' && STRING.test(text)) i = STRING.lastIndex - 1;
    const [literal] = "-IN".includes(text[i]!) ? LITERAL.exec(text) ?? [] : [];
    if (literal === undefined) continue;
    const number = { NaN: `"${nan}"`, Infinity: "1e999" }[literal] ?? "-1e999";
    plain += text.slice(from, i) + number;
    from = i + literal.length;
    i = from - 1;
  }
  if (from === 0) return undefined;
  try {
    return JSON.parse(plain + text.slice(from), (_, value) => value === nan ? NaN : value);
  } catch {
    return undefined;
  }
}

/** The parsed value if it is an object; its own keys only, so `__proto__` is a key like any other. */
export function asObject(
  value: MetadataValue | undefined,
): { readonly [key: string]: MetadataValue } | undefined {
  return OBJECT.accepts(value) ? value as { readonly [key: string]: MetadataValue } : undefined;
}

/**
 * A JSON file beside a model; undefined where there is none.
 *
 * @throws {FormatError} If it is not JSON.
 */
export async function readJson(
  file: Pick<WeightFile, "name" | "readText">,
  name: string,
): Promise<MetadataValue | undefined> {
  const text = await file.readText?.(name);
  return text === undefined ? undefined : parseJson(text, { file: file.name, place: name });
}

/** Ids of tokens in a field that holds one or several; what is none is left out. */
export function idsOf(value: MetadataValue | undefined): number[] {
  return [value].flat().filter(COUNT.accepts);
}

function scanKeys(text: string, file: string): void {
  // One entry for every open bracket: the keys seen so far, or undefined for an array.
  const open: (Set<string> | undefined)[] = [];
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === "{" || character === "[") {
      if (open.length === MAX_DEPTH) {
        throw new FormatError(`its JSON nests deeper than ${MAX_DEPTH}`, {
          file,
          place: `character ${i}`,
        });
      }
      open.push(character === "{" ? new Set() : undefined);
    } else if (character === "}" || character === "]") {
      open.pop();
    } else if (character === '"') {
      const end = stringEnd(text, i);
      const keys = open.at(-1);
      if (keys && isKey(text, end + 1)) {
        addKey(keys, { quoted: text.slice(i, end + 1), file, place: i });
      }
      i = end;
    }
  }
}

/** Position of the closing quote, or the end of the text. */
function stringEnd(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const character = text[i];
    if (character === "\\") i++;
    else if (character === '"') return i;
  }
  return text.length;
}

function isKey(text: string, from: number): boolean {
  let i = from;
  while (i < text.length && " \t\r\n".includes(text[i])) i++;
  return text[i] === ":";
}

function addKey(
  keys: Set<string>,
  { quoted, file, place }: {
    readonly quoted: string;
    readonly file: string;
    readonly place: number;
  },
): void {
  let key = quoted;
  try {
    key = JSON.parse(quoted) as string; // the same key may be written with and without escapes
  } catch {
    // JSON.parse of the whole text will tell.
  }
  if (keys.has(key)) {
    throw new FormatError(`the key ${JSON.stringify(key)} stands twice in its JSON`, {
      file,
      place: `character ${place}`,
    });
  }
  keys.add(key);
}
