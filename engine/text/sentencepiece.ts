// Tokenizers from SentencePiece's own files. The normalizer comes first (character map, blanks, the blank
// in front), then the merge or Viterbi core. Words that the model's author added by hand are cut out before
// merging; in a unigram model they are pieces with a score of their own. A stretch between control tokens
// counts as a text of its own, with its own blank in front, as in GGUF files of the same models.
//
// A `.model` file does not say which ids a model wants around a text; the habit of its kind is taken (BOS in
// front for BPE, EOS behind for unigram) unless the caller knows better from tokenizer_config.json.
// Left out: sampling of segmentations, word and char models, and splitting merges of unused pieces again.

import { FormatError, UnsupportedError } from "../errors.ts";
import { assembleTokenizer } from "./assemble.ts";
import { BLANK_MARK, createCharBpe, mergeByScore, pieceBytes } from "./char_bpe.ts";
import { createCharsmap } from "./charsmap.ts";
import { endOfGenerationIds } from "./end_of_generation.ts";
import { readSentencePieceModel, type SentencePieceModel } from "./sentencepiece_model.ts";
import { createSpecialSplitter } from "./special_split.ts";
import type { Tokenizer } from "./tokenizer_types.ts";
import { createUnigram } from "./unigram.ts";
import {
  createVocabulary,
  TOKEN_KIND,
  tokensOfKinds,
  type Vocabulary,
} from "./vocabulary/vocabulary.ts";

/**
 * What a file beside the model may say.
 * @category Tokens and templates
 */
export interface SentencePieceOptions {
  /** Whether BOS goes in front. */
  readonly addBos?: boolean | undefined;
  /** Whether EOS goes behind. */
  readonly addEos?: boolean | undefined;
}

type Core = (text: string, out: number[]) => void;

interface Algorithm {
  readonly addBos: boolean;
  readonly addEos: boolean;
  build(model: SentencePieceModel, vocabulary: Vocabulary, file: string): Core;
}

const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map<string, Algorithm>([
  ["bpe", { addBos: true, addEos: false, build: buildBpe }],
  ["unigram", { addBos: false, addEos: true, build: buildUnigram }],
]);

/**
 * Builds a tokenizer from a `.model` file.
 *
 * @throws {FormatError} If the file is damaged. @throws {UnsupportedError} For word and char models.
 *
 * @example
 * ```ts ignore
 * import { tokenizerFromSentencePiece } from "@troodon/troodon/tokenizers";
 *
 * const bytes = await Deno.readFile("tokenizer.model");
 * console.log(tokenizerFromSentencePiece(bytes, "tokenizer.model").encode("The sea"));
 * ```
 * @category Tokens and templates
 */
export function tokenizerFromSentencePiece(
  bytes: Uint8Array,
  file: string,
  options: SentencePieceOptions = {},
): Tokenizer {
  return createSentencePieceTokenizer(readSentencePieceModel(bytes, file), file, options);
}

/** Builds a tokenizer from a model that was read. */
export function createSentencePieceTokenizer(
  model: SentencePieceModel,
  file: string,
  options: SentencePieceOptions = {},
): Tokenizer {
  const algorithm = ALGORITHMS.get(model.algorithm);
  if (algorithm === undefined) {
    throw new UnsupportedError(
      `models of the kind ${JSON.stringify(model.algorithm)} are not read`,
      {
        file,
        remedy: `Use a model of the kind ${[...ALGORITHMS.keys()].join(" or ")}`,
      },
    );
  }
  const vocabulary = createVocabulary(model.texts, model.kinds);
  const roles = readRoles(model, file);
  const encode = algorithm.build(model, vocabulary, file);
  const normalize = createNormalizer(model, vocabulary, file);
  const utf8 = new TextEncoder();
  const addBos = (options.addBos ?? algorithm.addBos) && roles.bosId !== undefined;
  const addEos = (options.addEos ?? algorithm.addEos) && roles.eosId !== undefined;
  return assembleTokenizer({
    vocabulary: withoutExtraWords(vocabulary),
    algorithm: model.algorithm === "bpe" ? "bpe" : "unigram",
    ...roles,
    endOfGenerationIds: endOfGenerationIds(vocabulary, [roles.eosId]),
    prefix: addBos ? [roles.bosId!] : [],
    suffix: addEos ? [roles.eosId!] : [],
    leadingBlanks: leadingBlanksOf(model),
    warnings: warningsOf(model, options, file),
    encodeStretch: (text, _isFirst, out) => encode(normalize(text), out),
    bytesOf: pieceBytes(vocabulary, (text) => utf8.encode(text)),
  });
}

function leadingBlanksOf(model: SentencePieceModel): number {
  if (model.removeExtraBlanks) return Infinity;
  return model.addDummyPrefix && !model.blankIsSuffix ? 1 : 0;
}

/** They must not be cut out before the normalizer, which may change what stands around them. */
function withoutExtraWords({ texts, kinds, ids }: Vocabulary): Vocabulary {
  const plain = kinds.map((kind) => kind === TOKEN_KIND.userDefined ? TOKEN_KIND.normal : kind);
  return { texts, kinds: plain, ids };
}

function warningsOf(
  { kinds, algorithm }: SentencePieceModel,
  { addBos, addEos }: SentencePieceOptions,
  file: string,
): string[] {
  const warnings: string[] = [];
  if (addBos === undefined && addEos === undefined) {
    const habit = ALGORITHMS.get(algorithm)!.addBos ? "BOS in front" : "EOS behind";
    warnings.push(
      `${file}: no tokenizer_config.json says what goes around a text; ${habit} is taken, the habit ` +
        `of ${algorithm} models`,
    );
  }
  if (algorithm === "bpe" && kinds.includes(TOKEN_KIND.unused)) {
    warnings.push(
      `${file}: some pieces are marked unused; texts that merge into one keep it, unlike the reference`,
    );
  }
  return warnings;
}

function readRoles(model: SentencePieceModel, file: string) {
  const count = model.texts.length;
  const idOf = (key: "unkId" | "bosId" | "eosId" | "padId") => {
    const id = model[key];
    if (id < 0) return undefined;
    if (id < count) return id;
    // Defaults of the proto stand for pieces that a tiny model may not have.
    if (id <= 2) return undefined;
    throw new FormatError(`${key} is ${id}, the model has ${count} pieces`, { file });
  };
  const unknown = model.kinds.indexOf(TOKEN_KIND.unknown);
  return {
    unkId: unknown >= 0 ? unknown : idOf("unkId"),
    bosId: idOf("bosId"),
    eosId: idOf("eosId"),
    padId: idOf("padId"),
  };
}

function buildBpe(model: SentencePieceModel, vocabulary: Vocabulary, file: string): Core {
  const encode = createCharBpe({
    vocabulary,
    merge: mergeByScore(vocabulary, model.scores),
    unkId: readRoles(model, file).unkId,
    fuseUnknown: true,
    byteFallback: model.byteFallback,
    name: file,
  });
  const cutOut = createSpecialSplitter(tokensOfKinds(vocabulary, [TOKEN_KIND.userDefined]));
  return (text, out) => cutOut(text, (part) => encode(part, out), (id) => out.push(id));
}

function buildUnigram(model: SentencePieceModel, vocabulary: Vocabulary, file: string): Core {
  const { unkId } = readRoles(model, file);
  if (unkId === undefined) throw new FormatError("has no unknown piece", { file });
  // Unused pieces never come out of the reference.
  const kinds = vocabulary.kinds.map((kind) =>
    kind === TOKEN_KIND.unused ? TOKEN_KIND.control : kind
  );
  return createUnigram({
    vocabulary: { ...vocabulary, kinds },
    scores: unigramScores(model),
    unkId,
    byteFallback: model.byteFallback,
    isSingle: true,
  });
}

/**
 * Words added by hand get a tenth for every byte but the first, as in SentencePiece 0.2.3: more than pieces, whose
 * scores are negative. Before, it was a little less than nothing, and a longer piece could win.
 */
function unigramScores({ texts, kinds, scores }: SentencePieceModel): Float32Array {
  const utf8 = new TextEncoder();
  return scores.map((score, id) =>
    kinds[id] === TOKEN_KIND.userDefined ? (utf8.encode(texts[id]).length - 1) * 0.1 : score
  );
}

function createNormalizer(
  model: SentencePieceModel,
  vocabulary: Vocabulary,
  file: string,
): (text: string) => string {
  const mapCharacters = createCharsmap(model.charsmap, file);
  // Words added by hand are left as they are, wherever they stand.
  const cutOut = createSpecialSplitter(tokensOfKinds(vocabulary, [TOKEN_KIND.userDefined]));
  const mark = model.escapeBlanks ? BLANK_MARK : " ";
  return (text) => {
    let normal = "";
    cutOut(
      text,
      (part) => normal += mapCharacters(part),
      (id) => normal += vocabulary.texts.get(id)!,
    );
    if (model.removeExtraBlanks) normal = normal.replace(/ +/g, " ").replace(/^ /, "");
    if (normal === "") return "";
    let marked = model.escapeBlanks ? normal.replaceAll(" ", BLANK_MARK) : normal;
    if (model.addDummyPrefix && !model.blankIsSuffix) marked = mark + marked;
    // The reference drops marks that the text itself ends with, too.
    if (model.removeExtraBlanks) marked = trimEnd(marked, mark);
    return model.addDummyPrefix && model.blankIsSuffix ? marked + mark : marked;
  };
}

function trimEnd(text: string, mark: string): string {
  let end = text.length;
  while (text[end - 1] === mark) end--;
  return text.slice(0, end);
}
