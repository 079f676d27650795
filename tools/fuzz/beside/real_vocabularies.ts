// The vocabularies of published models, read here and by the reference of each: as tiktoken's ranks, as a SentencePiece
// model, as tokenizer.json. Those that come in GGUF files are written in the form that their reference reads.

import { openModel } from "../../../engine/models/open_model.ts";
import type { MetadataValue } from "../../../engine/formats/source.ts";
import { StringTable } from "../../../engine/formats/string_table.ts";
import { readTextParts } from "../../../engine/text/text_parts.ts";
import { type Tokenizer, tokenizerFromJson } from "../../../engine/text/tokenizer.ts";
import { modelNeed, modelPath } from "../../../tests/support/models.ts";
import type { Need } from "../../../tests/support/skip.ts";
import {
  clipDocument,
  readVocabulary,
  vocabularyNeed,
  vocabularyPath,
} from "../../../tests/support/vocabularies.ts";
import { writeSentencePiece } from "../../../tests/support/write_sentencepiece.ts";

/** A tokenizer of the reference. */
export type Opening =
  | { readonly kind: "tokenizers"; readonly document: unknown }
  | { readonly kind: "sentencepiece"; readonly model: string }
  | { readonly kind: "tiktoken"; readonly ranks: string; readonly pattern: string };

/** A vocabulary here and there. */
export interface RealVocabulary {
  readonly tokenizer: Tokenizer;
  readonly opening: Opening;
}

interface Row {
  readonly need: () => Need;
  read(): Promise<RealVocabulary>;
}

/** Patterns as OpenAI and Meta published them. */
const GPT2 = String.raw`'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const CL100K = String.raw`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}` +
  String.raw`| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`;
const LLAMA3 = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` +
  String.raw`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;

type Metadata = ReadonlyMap<string, MetadataValue>;

const ROWS: Readonly<Record<string, Row>> = {
  gpt2: fromRanks("gpt2", GPT2),
  cl100k: fromRanks("cl100k", CL100K),
  llama3: fromRanks("llama3", LLAMA3),
  llama2: {
    need: () => vocabularyNeed("llama2"),
    read: async () => ({
      tokenizer: readVocabulary("llama2"),
      opening: { kind: "sentencepiece", model: await base64Of(vocabularyPath("llama2")) },
    }),
  },
  clip: {
    need: () => vocabularyNeed("clip"),
    read: async () => ({
      tokenizer: readVocabulary("clip"),
      opening: {
        kind: "tokenizers",
        document: clipDocument(await Deno.readTextFile(vocabularyPath("clip"))),
      },
    }),
  },
  minilm: {
    need: () => modelNeed("minilm"),
    async read() {
      const document = JSON.parse(
        await Deno.readTextFile(modelPath("minilm")!.replace(/[^/]*$/, "tokenizer.json")),
      );
      const bare = { ...document, truncation: null, padding: null };
      return {
        tokenizer: tokenizerFromJson(document, { tokenizerConfig: undefined, name: "minilm" }),
        opening: { kind: "tokenizers", document: bare },
      };
    },
  },
  smollm2: fromGguf("smollm2-135m", byteBpeOpening),
  gemma3: fromGguf("gemma3-270m", sentencePieceOpening),
};

/** Names of all of them. */
export const REAL_NAMES: readonly string[] = Object.keys(ROWS);

/** What a vocabulary needs. */
export function realNeed(name: string): Need {
  return ROWS[name]!.need();
}

/** Reads a vocabulary. */
export function readReal(name: string): Promise<RealVocabulary> {
  return ROWS[name]!.read();
}

async function base64Of(path: string): Promise<string> {
  return (await Deno.readFile(path)).toBase64();
}

function fromRanks(name: string, pattern: string): Row {
  return {
    need: () => vocabularyNeed(name),
    read: () => {
      const tokenizer = readVocabulary(name);
      return Promise.resolve({
        tokenizer,
        opening: { kind: "tiktoken", ranks: vocabularyPath(name), pattern },
      });
    },
  };
}

function fromGguf(name: string, openingOf: (metadata: Metadata) => Opening): Row {
  return {
    need: () => modelNeed(name),
    async read() {
      const file = await openModel(modelPath(name)!);
      try {
        const tokenizer = (await readTextParts(file)).tokenizer();
        return { tokenizer, opening: openingOf(file.metadata) };
      } finally {
        file.close();
      }
    },
  };
}

function listOf<T>(metadata: Metadata, key: string): readonly T[] {
  const value = metadata.get(`tokenizer.ggml.${key}`);
  return value instanceof StringTable ? value.all() as readonly T[] : Array.from(value as T[]);
}

/** A byte-level BPE whose digits stand alone. */
function byteBpeOpening(metadata: Metadata): Opening {
  const tokens = listOf<string>(metadata, "tokens");
  const kinds = listOf<number>(metadata, "token_type");
  const flags = { normalized: false, single_word: false, lstrip: false, rstrip: false };
  const byteLevel = { type: "ByteLevel", trim_offsets: true, use_regex: true };
  const document = {
    added_tokens: tokens.flatMap((content, id) =>
      kinds[id] === 1 ? [] : [{ id, content, special: kinds[id] === 3, ...flags }]
    ),
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Digits", individual_digits: true },
        { ...byteLevel, add_prefix_space: false },
      ],
    },
    decoder: { ...byteLevel, add_prefix_space: false },
    model: {
      type: "BPE",
      vocab: Object.fromEntries(tokens.map((text, id) => [text, id])),
      merges: listOf<string>(metadata, "merges"),
    },
  };
  return { kind: "tokenizers", document };
}

/** A SentencePiece model of merges, whose kinds of pieces have the same numbers. */
function sentencePieceOpening(metadata: Metadata): Opening {
  const kinds = listOf<number>(metadata, "token_type");
  const scores = listOf<number>(metadata, "scores");
  // The converter writes the marks of words added by hand as blanks.
  const pieces = listOf<string>(metadata, "tokens").map((text, id) => ({
    text: kinds[id] === 4 ? text.replaceAll(" ", "▁") : text,
    kind: kinds[id]!,
    score: scores[id]!,
  }));
  const idOf = (role: string) => metadata.get(`tokenizer.ggml.${role}_token_id`) as number;
  const addSpace = metadata.get("tokenizer.ggml.add_space_prefix") === false ? 0 : 1;
  const model = writeSentencePiece(pieces, {
    trainer: { 3: 2, 35: 1, 40: idOf("unknown"), 41: idOf("bos"), 42: idOf("eos") },
    normalizer: { 3: addSpace, 4: 0, 5: 1 },
  });
  return { kind: "sentencepiece", model: model.toBase64() };
}
