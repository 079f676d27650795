// BPE over characters with byte fallback: what SentencePiece's BPE models do, whether the order of
// merges comes from scores of pieces (GGUF) or from a list of merges (tokenizer.json). A stretch of
// text is one sequence, blanks written as U+2581; a character without a piece falls apart into its
// UTF-8 bytes where the vocabulary has all of them, and is the unknown token otherwise.

import { FormatError } from "../errors.ts";
import { decodeText, StringTable } from "../formats/string_table.ts";
import type { TextMerge } from "./byte_bpe.ts";
import { createMerger } from "./merge_bpe.ts";
import type { TextList } from "./vocabulary/text_list.ts";
import { byteOfToken, byteTokenIds, TOKEN_KIND, type Vocabulary } from "./vocabulary/vocabulary.ts";
import { rememberWords } from "./word_cache.ts";

/** SentencePiece's mark for a blank. */
export const BLANK_MARK = "\u2581";
const BLANK_UNIT = BLANK_MARK.charCodeAt(0);

/** Merges by score: any two symbols whose joined text is a piece, the highest score first. */
export function mergeByScore(
  { ids, kinds }: Vocabulary,
  scores: ArrayLike<number | bigint>,
): TextMerge {
  return (left, right) => {
    const id = ids.get(left + right);
    if (id === undefined) return undefined;
    // Control and byte tokens are no pieces of text, however their names are spelt.
    const isPiece = kinds[id] === TOKEN_KIND.normal || kinds[id] === TOKEN_KIND.unused ||
      kinds[id] === TOKEN_KIND.userDefined;
    return isPiece ? { rank: -Number(scores[id]), id } : undefined;
  };
}

/** What a character BPE is made of. */
export interface CharBpeOptions {
  readonly vocabulary: Vocabulary;
  readonly merge: TextMerge;
  readonly unkId?: number | undefined;
  /** Whether several unknown characters in a row are one unknown token. */
  readonly fuseUnknown: boolean;
  readonly byteFallback: boolean;
  /** File name, for messages. */
  readonly name: string;
}

/** Makes the encoder of ordinary text whose blanks are already marked. */
export function createCharBpe(options: CharBpeOptions): (text: string, out: number[]) => void {
  const { vocabulary, unkId, name } = options;
  const { texts, kinds, ids } = vocabulary;
  const byteIds = byteTokenIds(ids);
  const merge = createMerger((left, right) => options.merge(textOf(left), textOf(right)));
  const utf8 = new TextEncoder();

  // A character without a piece gets a negative symbol, from which it can be told.
  function textOf(symbol: number): string {
    return symbol >= 0 ? texts.get(symbol)! : String.fromCodePoint(-1 - symbol);
  }

  function symbolOf(char: string): number {
    const id = ids.get(char);
    if (id !== undefined && kinds[id] !== TOKEN_KIND.control) return id;
    return -1 - (char.codePointAt(0) as number);
  }

  function pushBytes(char: string, out: number[]): boolean {
    const bytes = options.byteFallback ? utf8.encode(char) : undefined;
    if (!bytes?.every((byte) => byteIds[byte] >= 0)) return false;
    for (const byte of bytes) out.push(byteIds[byte]);
    return true;
  }

  function needUnknown(char: string): number {
    if (unkId !== undefined) return unkId;
    throw new FormatError(`the vocabulary has no token for ${JSON.stringify(char)}`, {
      file: name,
      remedy: "Leave the character out, or use a model with byte tokens or an unknown token",
    });
  }

  function encodeWhole(text: string): number[] {
    const out: number[] = [];
    const symbols = new Int32Array(text.length);
    let count = 0;
    for (const char of text) symbols[count++] = symbolOf(char);
    count = merge(symbols, count);
    // An unknown token waits for the next piece or unknown character, so that byte tokens overtake it, as in Hugging
    // Face's bpe/model.rs. It shows where a vocabulary has some of the byte tokens only.
    let waiting = -1;
    const flush = () => {
      if (waiting >= 0) out.push(waiting);
      waiting = -1;
    };
    for (let i = 0; i < count; i++) {
      if (symbols[i] >= 0) {
        flush();
        out.push(symbols[i]);
        continue;
      }
      const char = textOf(symbols[i]);
      if (pushBytes(char, out)) continue;
      if (!options.fuseUnknown) flush();
      waiting = needUnknown(char);
    }
    flush();
    return out;
  }

  const encodeCached = rememberWords(encodeWhole);
  // Found when it is first needed, so that a model that only answers numbers does not pay for it.
  let joints: ReadonlySet<string> | undefined;

  return (text, out) => {
    joints ??= charactersBeforeMarks(texts);
    // Without a piece for the mark, unknown tokens could reach over a cut.
    const mayCut = ids.get(BLANK_MARK) !== undefined;
    let start = 0;
    while (start < text.length) {
      let end = mayCut ? text.indexOf(BLANK_MARK, start + 1) : -1;
      while (end >= 0 && joints.has(text[end - 1])) end = text.indexOf(BLANK_MARK, end + 1);
      if (end < 0) end = text.length;
      for (const id of encodeCached(text.slice(start, end))) out.push(id);
      start = end;
    }
  };
}

/**
 * The UTF-16 units that stand before a mark inside any piece, the mark itself always. No merge reaches
 * from another character over a mark, so cutting there changes nothing; it makes repeated words cheap.
 */
function charactersBeforeMarks(texts: TextList): Set<string> {
  const found = new Set<string>([BLANK_MARK]);
  if (texts instanceof StringTable) {
    addBeforeMarks(texts, found);
    return found;
  }
  for (const text of texts.all()) {
    for (let at = text.indexOf(BLANK_MARK, 1); at > 0; at = text.indexOf(BLANK_MARK, at + 1)) {
      found.add(text[at - 1]);
    }
  }
  return found;
}

/** The same on the bytes of a vocabulary, hardly any of which has to be decoded for it. */
function addBeforeMarks({ bytes, starts, length, lengthBytes }: StringTable, found: Set<string>) {
  for (let i = 0; i < length; i++) {
    const start = starts[i], end = starts[i + 1] - lengthBytes;
    for (let at = start + 1; at < end - 2; at++) {
      if (!isMark(bytes, at) || (at >= start + 3 && isMark(bytes, at - 3))) continue;
      found.add(decodeText(bytes.subarray(start, at)).at(-1)!);
    }
  }
}

/** U+2581 in UTF-8. */
function isMark(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0xe2 && bytes[at + 1] === 0x96 && bytes[at + 2] === 0x81;
}

/** Bytes of a piece: byte tokens are their byte, marks are blanks. `encode` gives a text's bytes. */
export function pieceBytes(
  { texts, kinds }: Vocabulary,
  encode: (text: string) => Uint8Array,
): (id: number) => Uint8Array {
  return (id) => {
    const text = texts.get(id)!;
    if (kinds[id] === TOKEN_KIND.byte) {
      const byte = byteOfToken(text);
      if (byte >= 0) return Uint8Array.of(byte);
    }
    const isText = kinds[id] !== TOKEN_KIND.control && kinds[id] !== TOKEN_KIND.unknown;
    return isText ? plainBytes(text) ?? encode(text.replaceAll(BLANK_MARK, " ")) : encode(text);
  };
}

// UTF-8 with blanks for their marks; undefined where there are surrogates. For all of a vocabulary an encoder's call each
// would be most of the time.
function plainBytes(text: string): Uint8Array | undefined {
  let size = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xe000) return undefined;
    size += unit < 0x80 || unit === BLANK_UNIT ? 1 : unit < 0x800 ? 2 : 3;
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) bytes[at++] = unit;
    else if (unit === BLANK_UNIT) bytes[at++] = 0x20;
    else {
      if (unit < 0x800) bytes[at++] = 0xc0 | unit >> 6;
      else {
        bytes[at++] = 0xe0 | unit >> 12;
        bytes[at++] = 0x80 | unit >> 6 & 0x3f;
      }
      bytes[at++] = 0x80 | unit & 0x3f;
    }
  }
  return bytes;
}
