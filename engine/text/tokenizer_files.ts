// Finds a tokenizer among the files beside a model's weights, where there is no tokenizer.json: one row for
// each name under which checkpoints keep one. The first row that finds its files wins; what a file really
// is decides its content (Llama 3's `tokenizer.model` is a rank file of tiktoken).

import { UnsupportedError } from "../errors.ts";
import type { WeightFile } from "../formats/source.ts";
import { readJson } from "../formats/strict_json.ts";
import { tokenizerFromLlama2c } from "./llama2c_tokenizer.ts";
import { tokenizerFromRemapped } from "./remapped_sentencepiece.ts";
import { tokenizerFromSentencePiece } from "./sentencepiece.ts";
import { isTiktoken, tokenizerFromTiktoken } from "./tiktoken.ts";
import type { Tokenizer } from "./tokenizer_types.ts";
import {
  tokenizerFromVocabMerges,
  tokenizerFromVocabText,
  type VocabularyCompanions,
} from "./vocabulary/vocabulary_files.ts";

/** Files by plain name; the part of a weight file that this needs. */
export type ModelFiles = Pick<WeightFile, "name" | "readText" | "readBytes">;

type Row = (files: ModelFiles) => Promise<Tokenizer | undefined>;

const ROWS: readonly Row[] = [
  (files) => fromModelFile(files, "tokenizer.model"),
  (files) => fromModelFile(files, "spiece.model"),
  fromRemapped,
  (files) => fromModelFile(files, "qwen.tiktoken"),
  fromVocabMerges,
  fromVocabText,
  async (files) => {
    const bytes = await files.readBytes?.("tokenizer.bin");
    return bytes && tokenizerFromLlama2c(bytes, "tokenizer.bin");
  },
];

/**
 * The tokenizer of a model's folder, or undefined when none of the names is there.
 *
 * @throws {FormatError | UnsupportedError} If a file is there and cannot be used.
 */
export async function findTokenizer(files: ModelFiles): Promise<Tokenizer | undefined> {
  for (const row of ROWS) {
    const tokenizer = await row(files);
    if (tokenizer) return tokenizer;
  }
  return undefined;
}

async function fromModelFile(files: ModelFiles, name: string): Promise<Tokenizer | undefined> {
  const bytes = await files.readBytes?.(name);
  if (!bytes) return undefined;
  if (isTiktoken(bytes)) {
    return tokenizerFromTiktoken(new TextDecoder().decode(bytes), { file: name });
  }
  const config = await readJson(files, "tokenizer_config.json") as
    | Record<string, unknown>
    | undefined;
  const flag = (key: string) => typeof config?.[key] === "boolean" ? config[key] : undefined;
  return tokenizerFromSentencePiece(bytes, name, {
    addBos: flag("add_bos_token"),
    addEos: flag("add_eos_token"),
  });
}

/** The name under which models of fairseq keep theirs; their ids are not those of the pieces. */
async function fromRemapped(files: ModelFiles): Promise<Tokenizer | undefined> {
  const name = "sentencepiece.bpe.model";
  const bytes = await files.readBytes?.(name);
  if (!bytes) return undefined;
  const vocab = await readJson(files, "vocab.json");
  if (vocab !== undefined) {
    return tokenizerFromRemapped(bytes, { vocab, file: name }, await readCompanions(files));
  }
  throw new UnsupportedError("the ids of its pieces are shifted by a rule of the model's own", {
    file: name,
    remedy: "Put the model's tokenizer.json beside the weights",
  });
}

async function fromVocabMerges(files: ModelFiles): Promise<Tokenizer | undefined> {
  const merges = await files.readText?.("merges.txt");
  if (merges === undefined) return undefined;
  const vocab = await readJson(files, "vocab.json");
  if (vocab === undefined) return undefined;
  return tokenizerFromVocabMerges(vocab, {
    merges,
    file: "vocab.json",
    companions: await readCompanions(files),
  });
}

async function fromVocabText(files: ModelFiles): Promise<Tokenizer | undefined> {
  const vocab = await files.readText?.("vocab.txt");
  return vocab === undefined
    ? undefined
    : tokenizerFromVocabText(vocab, { file: "vocab.txt", companions: await readCompanions(files) });
}

async function readCompanions(files: ModelFiles): Promise<VocabularyCompanions> {
  return {
    config: await readJson(files, "tokenizer_config.json"),
    added: await readJson(files, "added_tokens.json"),
    roles: await readJson(files, "special_tokens_map.json"),
  };
}
