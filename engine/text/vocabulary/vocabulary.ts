// A vocabulary as data: the text and the kind of each id, with the way back from text to id. Every
// kind of tokenizer stands on it; where it came from (GGUF keys, tokenizer.json) no longer matters.

import { StringTable } from "../../formats/string_table.ts";
import { createTableIndex } from "./table_index.ts";
import { createTextIndex, type TextIndex } from "./text_index.ts";
import { listOf, type TextList } from "./text_list.ts";

/** What a token is for. The numbers are those of the GGUF key `tokenizer.ggml.token_type`. */
export const TOKEN_KIND = {
  normal: 1,
  unknown: 2,
  control: 3,
  userDefined: 4,
  unused: 5,
  byte: 6,
} as const;

/** Texts, kinds and ids of all tokens. */
export interface Vocabulary {
  /** Text of each id as the file writes it. */
  readonly texts: TextList;
  /** Kind of each id, one of {@linkcode TOKEN_KIND}. */
  readonly kinds: Uint8Array;
  /** Id of each text; the first one where two are alike. Empty texts are left out. */
  readonly ids: TextIndex;
}

/** Indexes texts and kinds. */
export function createVocabulary(
  texts: readonly string[] | StringTable,
  kinds: Uint8Array,
): Vocabulary {
  return texts instanceof StringTable
    ? { texts, kinds, ids: createTableIndex(texts) }
    : { texts: listOf(texts), kinds, ids: createTextIndex(texts) };
}

/** Texts and ids of the tokens of some kinds. */
export function tokensOfKinds(
  { texts, kinds, ids }: Vocabulary,
  wanted: readonly number[],
): Map<string, number> {
  const found = new Map<string, number>();
  // `indexOf` runs at once, where a loop over all of a vocabulary first waits for a compiler.
  const places: number[] = [];
  for (const kind of wanted) {
    for (let id = kinds.indexOf(kind); id >= 0; id = kinds.indexOf(kind, id + 1)) places.push(id);
  }
  for (const id of places.sort((a, b) => a - b)) {
    const text = texts.get(id);
    if (text && ids.get(text) === id) found.set(text, id);
  }
  return found;
}

/** The value of a byte token (`<0x0A>`), or -1. */
export function byteOfToken(text: string): number {
  return /^<0x[0-9A-Fa-f]{2}>$/.test(text) ? parseInt(text.slice(3, 5), 16) : -1;
}

/** Ids of the 256 byte tokens, which references look for in capitals only; -1 where the vocabulary lacks one. */
export function byteTokenIds(ids: TextIndex): Int32Array {
  const table = new Int32Array(256).fill(-1);
  for (let byte = 0; byte < 256; byte++) {
    const hex = byte.toString(16).padStart(2, "0").toUpperCase();
    table[byte] = ids.get(`<0x${hex}>`) ?? -1;
  }
  return table;
}
