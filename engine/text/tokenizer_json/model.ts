// The `model` and `added_tokens` of tokenizer.json: a vocabulary, and the encoder of one word.
// One row for each model type. Ids come from the file and are checked before arrays are sized by them.

import { FormatError } from "../../errors.ts";
import { createByteBpe, mergeByRank, type MergeTable } from "../byte_bpe.ts";
import { createCharBpe } from "../char_bpe.ts";
import {
  asNode,
  childNode,
  childNodes,
  countField,
  flagField,
  type JsonNode,
  listField,
  refuseFeature,
  refuseField,
  textField,
} from "./fields.ts";
import { createTextIndex } from "../vocabulary/text_index.ts";
import { createUnigram } from "../unigram.ts";
import {
  byteOfToken,
  createVocabulary,
  TOKEN_KIND,
  type Vocabulary,
} from "../vocabulary/vocabulary.ts";
import { createWordPiece } from "../word_piece.ts";
import type { TokenManners } from "../special_split.ts";
import type { TokenizerAlgorithm } from "../tokenizer_types.ts";

/** Encodes one word. */
export type WordEncoder = (word: string, out: number[]) => void;

/** A model that was read. */
export interface JsonModel {
  readonly vocabulary: Vocabulary;
  readonly algorithm: TokenizerAlgorithm;
  readonly encodeWord: WordEncoder;
  readonly unkId: number | undefined;
  readonly manners: ReadonlyMap<number, TokenManners>;
  /** Ids of added tokens that are looked for in normalized text. */
  readonly normalizedIds: ReadonlySet<number>;
  /** Text at the end of a word's last piece; empty in most models. */
  readonly wordSuffix: string;
}

/** Ids may leave holes, but not many more of them than tokens. */
const MAX_HOLES = 1 << 16;

interface ModelSource {
  readonly node: JsonNode;
  readonly vocabulary: Vocabulary;
  readonly unkId: number | undefined;
  readonly isByteLevel: boolean;
}

interface Row {
  readonly algorithm: TokenizerAlgorithm;
  read(source: ModelSource): WordEncoder;
}

const ROWS: ReadonlyMap<string, Row> = new Map([
  ["BPE", { algorithm: "bpe", read: readBpe }],
  ["WordPiece", { algorithm: "word_piece", read: readWordPiece }],
  ["Unigram", { algorithm: "unigram", read: readUnigram }],
  ["WordLevel", { algorithm: "word_level", read: readWordLevel }],
]);

/** Reads model and added tokens of a document. */
export function readModel(document: JsonNode, isByteLevel: boolean): JsonModel {
  const node = childNode(document, "model") ??
    refuseField(document, { key: "model", message: "the field is missing" });
  const type = textField(node, "type") ?? guessType(node);
  const row = ROWS.get(type) ?? refuseFeature(node, `model ${JSON.stringify(type)}`);
  const added = childNodes(document, "added_tokens");
  const vocabulary = readVocabulary(node, added);
  const unkId = readUnknown(node, vocabulary);
  return {
    vocabulary,
    unkId,
    algorithm: row.algorithm,
    encodeWord: row.read({ node, vocabulary: ownVocabulary(node, vocabulary), unkId, isByteLevel }),
    manners: readManners(added),
    normalizedIds: readNormalizedIds(added),
    wordSuffix: textField(node, "end_of_word_suffix") ?? "",
  };
}

/** Files of before 2020 do not name the type. */
function guessType(node: JsonNode): string {
  if (Array.isArray(node.value.vocab)) return "Unigram";
  return node.value.merges === undefined ? "WordPiece" : "BPE";
}

function readEntries(node: JsonNode): [string, number][] {
  const vocab = node.value.vocab;
  if (Array.isArray(vocab)) {
    return vocab.map((entry, id) => {
      if (!Array.isArray(entry) || typeof entry[0] !== "string" || typeof entry[1] !== "number") {
        refuseField(node, { key: `vocab[${id}]`, message: "must be a pair of text and score" });
      }
      return [entry[0], id];
    });
  }
  const entries = Object.entries(
    asNode(vocab, { path: `${node.path}.vocab`, file: node.file }).value,
  );
  for (const [text, id] of entries) checkId(node, `vocab[${JSON.stringify(text)}]`, id);
  return entries as [string, number][];
}

function checkId(node: JsonNode, key: string, id: unknown): asserts id is number {
  if (!Number.isSafeInteger(id) || (id as number) < 0) {
    refuseField(node, { key, message: `${JSON.stringify(id)} is no token id` });
  }
}

function readVocabulary(node: JsonNode, added: readonly JsonNode[]): Vocabulary {
  const entries = readEntries(node);
  const extra = added.map((token): [string, number, boolean] => {
    const id = token.value.id;
    checkId(token, "id", id);
    return [textField(token, "content") ?? "", id, flagField(token, "special") ?? false];
  });
  let size = 0;
  for (const [, id] of [...entries, ...extra]) size = Math.max(size, id + 1);
  if (size > entries.length + extra.length + MAX_HOLES) {
    throw new FormatError(`the highest id is ${size - 1} for ${entries.length} tokens`, {
      file: node.file,
      place: `${node.path}.vocab`,
    });
  }
  const texts = new Array<string>(size).fill("");
  const kinds = new Uint8Array(size).fill(TOKEN_KIND.unused);
  const hasByteTokens = flagField(node, "byte_fallback") ?? false;
  for (const [text, id] of entries) {
    texts[id] = text;
    kinds[id] = hasByteTokens && byteOfToken(text) >= 0 ? TOKEN_KIND.byte : TOKEN_KIND.normal;
  }
  for (const [text, id, isControl] of extra) {
    texts[id] = text;
    kinds[id] = isControl ? TOKEN_KIND.control : TOKEN_KIND.userDefined;
  }
  return createVocabulary(texts, kinds);
}

/**
 * What the model itself may give: neither control tokens, so that text never becomes one, nor what only the added
 * tokens have, which the reference finds whole or not at all.
 */
function ownVocabulary(node: JsonNode, { texts, kinds, ids }: Vocabulary): Vocabulary {
  const own = new Set(readEntries(node).map(([, id]) => id));
  const ownKinds = kinds.map((kind, id) =>
    kind === TOKEN_KIND.userDefined && !own.has(id) ? TOKEN_KIND.control : kind
  );
  const get = (text: string) => {
    const id = ids.get(text);
    return id === undefined || ownKinds[id] === TOKEN_KIND.control ? undefined : id;
  };
  return { texts, kinds: ownKinds, ids: { get } };
}

function readUnknown(node: JsonNode, { ids, texts }: Vocabulary): number | undefined {
  const id = countField(node, "unk_id");
  if (id !== undefined && id >= texts.length) {
    refuseField(node, {
      key: "unk_id",
      message: `${id} is outside the vocabulary of ${texts.length} tokens`,
    });
  }
  const text = textField(node, "unk_token");
  return id ?? (text === undefined ? undefined : ids.get(text));
}

function readManners(added: readonly JsonNode[]): Map<number, TokenManners> {
  const found = new Map<number, TokenManners>();
  for (const token of added) {
    const left = flagField(token, "lstrip") ?? false;
    const right = flagField(token, "rstrip") ?? false;
    const isWord = flagField(token, "single_word") ?? false;
    if (left || right || isWord) found.set(token.value.id as number, { left, right, isWord });
  }
  return found;
}

/** Where the field is missing, the reference's own default: words, but not control tokens. */
function readNormalizedIds(added: readonly JsonNode[]): Set<number> {
  const normalized = added.filter((token) =>
    flagField(token, "normalized") ?? !(flagField(token, "special") ?? false)
  );
  return new Set(normalized.map((token) => token.value.id as number));
}

function readMerges(node: JsonNode): MergeTable {
  const list = listField(node, "merges");
  const isPairs = Array.isArray(list[0]);
  // Texts of pairs may hold blanks themselves; no text holds a zero and a blank mark in a row.
  const separator = isPairs ? "\0\u2581" : " ";
  const keys = list.map((merge, rank) => {
    if (isPairs) {
      const isPair = Array.isArray(merge) && merge.length === 2 &&
        merge.every((part) => typeof part === "string");
      return isPair
        ? (merge as string[]).join(separator)
        : refuseField(node, { key: `merges[${rank}]`, message: "must be a pair of texts" });
    }
    return typeof merge === "string" && merge.indexOf(" ", 1) > 0
      ? merge
      : refuseField(node, { key: `merges[${rank}]`, message: "has no blank between two parts" });
  });
  return { ranks: createTextIndex(keys), separator };
}

function readBpe({ node, vocabulary, unkId, isByteLevel }: ModelSource): WordEncoder {
  if (textField(node, "continuing_subword_prefix")) {
    refuseFeature(node, "BPE with a continuing_subword_prefix");
  }
  const wordSuffix = textField(node, "end_of_word_suffix") ?? "";
  const ignoreMerges = flagField(node, "ignore_merges") ?? false;
  const merges = readMerges(node);
  if (isByteLevel) {
    return createByteBpe({ vocabulary, merges, patterns: [], ignoreMerges, unkId, wordSuffix });
  }
  if (wordSuffix !== "" || ignoreMerges) {
    refuseFeature(node, "BPE over characters with end_of_word_suffix or ignore_merges");
  }
  return createCharBpe({
    vocabulary,
    merge: mergeByRank(vocabulary, merges),
    unkId,
    fuseUnknown: flagField(node, "fuse_unk") ?? false,
    byteFallback: flagField(node, "byte_fallback") ?? false,
    name: node.file,
  });
}

function readWordPiece({ node, vocabulary, unkId }: ModelSource): WordEncoder {
  return createWordPiece({
    vocabulary,
    marks: { begin: "", inside: textField(node, "continuing_subword_prefix") ?? "##" },
    unkId: unkId ??
      refuseField(node, { key: "unk_token", message: "is missing or not in the vocabulary" }),
    maxWordLength: countField(node, "max_input_chars_per_word") ?? 100,
  });
}

function readUnigram({ node, vocabulary, unkId }: ModelSource): WordEncoder {
  const scores = new Float64Array(vocabulary.texts.length);
  listField(node, "vocab").forEach((entry, id) => scores[id] = (entry as [string, number])[1]);
  // The reference finds byte tokens in a text, too, where it spells them.
  const kinds = vocabulary.kinds.map((kind) => kind === TOKEN_KIND.byte ? TOKEN_KIND.normal : kind);
  return createUnigram({
    vocabulary: { ...vocabulary, kinds },
    scores,
    unkId: unkId ?? refuseField(node, { key: "unk_id", message: "the field is missing" }),
    byteFallback: flagField(node, "byte_fallback") ?? false,
  });
}

function readWordLevel({ node, vocabulary, unkId }: ModelSource): WordEncoder {
  const unknown = unkId ??
    refuseField(node, { key: "unk_token", message: "is missing or not in the vocabulary" });
  return (word, out) => out.push(vocabulary.ids.get(word) ?? unknown);
}
