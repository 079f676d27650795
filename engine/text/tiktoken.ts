// Tokenizers from tiktoken's rank files: a line for each token, its bytes in base64 and its rank. Two
// neighbours merge where their joined bytes are a token, the lowest rank first, so the vocabulary is its own
// merge table. Pattern and control tokens stand in the code of each model, not in the file; for published
// vocabularies they are told by the number of ranks (tiktoken_kinds.ts), for others the caller gives them.

import { FormatError, UnsupportedError } from "../errors.ts";
import { assembleTokenizer } from "./assemble.ts";
import { byteBpeBytes, createByteBpe, missingBytes } from "./byte_bpe.ts";
import { BYTE_CHARS } from "./byte_level.ts";
import { endOfGenerationIds } from "./end_of_generation.ts";
import { compilePattern } from "./pre_tokenizers.ts";
import { TIKTOKEN_KINDS, type TiktokenKind } from "./tiktoken_kinds.ts";
import type { Tokenizer } from "./tokenizer_types.ts";
import { createVocabulary, TOKEN_KIND } from "./vocabulary/vocabulary.ts";

/** Whether a file looks like one of tiktoken: a first line of base64, a blank and a number. */
export function isTiktoken(bytes: Uint8Array): boolean {
  const head = String.fromCharCode(...bytes.subarray(0, 256));
  return /^[A-Za-z0-9+/]+={0,2} \d+\r?\n/.test(head);
}

/** Ranks may leave holes, but not many more of them than tokens. */
const MAX_HOLES = 1 << 16;

/**
 * Builds a tokenizer from the text of a rank file.
 *
 * @param kind Pattern and control tokens; told by the number of ranks where it is left out.
 * @throws {FormatError} If a line is none, or a rank stands twice.
 * @throws {UnsupportedError} If no kind is given and the number of ranks is that of no known vocabulary.
 *
 * @example
 * ```ts
 * import { tokenizerFromTiktoken } from "@troodon/troodon/tokenizers";
 * import { assertEquals } from "@std/assert";
 *
 * const bytes = Array.from({ length: 256 }, (_, byte) => `${btoa(String.fromCharCode(byte))} ${byte}`);
 * const ranks = [...bytes, `${btoa("ab")} 256`].join("\n");
 * const kind = { patterns: ["\\S+|\\s+"], control: { "<end>": 257 }, eos: "<end>" };
 * assertEquals(tokenizerFromTiktoken(ranks, { file: "own.tiktoken", kind }).encode("abc"), [256, 99]);
 * ```
 * @category Tokens and templates
 */
export function tokenizerFromTiktoken(
  text: string,
  { file, kind }: { readonly file: string; readonly kind?: TiktokenKind | undefined },
): Tokenizer {
  const texts = readRanks(text, file);
  const { patterns, control, bos, eos, ignoreMerges } = kind ?? findKind(texts.length, file);
  const kinds = new Array<number>(texts.length).fill(TOKEN_KIND.normal);
  for (const [name, id] of Object.entries(control)) {
    if (texts[id] !== undefined && texts[id] !== "") {
      throw new FormatError(`${JSON.stringify(name)} has the id ${id} of another token`, { file });
    }
    texts[id] = name;
    kinds[id] = TOKEN_KIND.control;
  }
  for (let id = 0; id < texts.length; id++) {
    texts[id] ??= "";
    if (texts[id] === "") kinds[id] = TOKEN_KIND.unused;
  }
  const vocabulary = createVocabulary(texts, Uint8Array.from(kinds));
  const lost = missingBytes(vocabulary);
  if (lost.length > 0) throw new FormatError(`has no token for the byte ${lost[0]}`, { file });
  const encode = createByteBpe({
    vocabulary,
    merges: { ranks: vocabulary.ids, separator: "" },
    patterns: patterns.map(compilePattern),
    ignoreMerges: ignoreMerges ?? true,
  });
  const [bosId, eosId] = [bos, eos].map((name) => name === undefined ? undefined : control[name]);
  return assembleTokenizer({
    vocabulary,
    algorithm: "bpe",
    bosId,
    eosId,
    endOfGenerationIds: endOfGenerationIds(vocabulary, [eosId]),
    prefix: bosId === undefined ? [] : [bosId],
    suffix: [],
    leadingBlanks: 0,
    warnings: [],
    encodeStretch: (text, _isFirst, out) => encode(text, out),
    bytesOf: byteBpeBytes(vocabulary),
  });
}

function findKind(count: number, file: string): TiktokenKind {
  const kind = TIKTOKEN_KINDS.get(count);
  if (kind !== undefined) return kind;
  throw new UnsupportedError(`a vocabulary of ${count} ranks, whose pattern is not known`, {
    file,
    remedy: `Use the model's tokenizer.json; known are ${
      [...TIKTOKEN_KINDS.keys()].join(", ")
    } ranks`,
  });
}

/** Texts in the byte alphabet, by rank. */
function readRanks(text: string, file: string): string[] {
  const texts: string[] = [];
  let count = 0;
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const place = `line ${index + 1}`;
    const [, base64, digits] = /^([A-Za-z0-9+/]+={0,2}) (\d{1,9})\r?$/.exec(line) ?? [];
    if (base64 === undefined) throw new FormatError("is no token and rank", { file, place });
    const rank = Number(digits);
    if (texts[rank] !== undefined) {
      throw new FormatError(`the rank ${rank} stands twice`, { file, place });
    }
    count++;
    if (rank > count + MAX_HOLES) {
      throw new FormatError(`the rank ${rank} is too high`, { file, place });
    }
    texts[rank] = decodeBytes(base64, file, place);
  }
  if (count === 0) throw new FormatError("holds no ranks", { file });
  return texts;
}

function decodeBytes(base64: string, file: string, place: string): string {
  try {
    return Array.from(Uint8Array.fromBase64(base64), (byte) => BYTE_CHARS[byte]).join("");
  } catch (cause) {
    throw new FormatError("is not base64", { file, place, cause });
  }
}
