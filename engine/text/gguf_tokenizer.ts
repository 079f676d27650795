// Tokenizers from the `tokenizer.ggml.*` keys of a GGUF file (ggml's docs/gguf.md). One row for each
// `tokenizer.ggml.model`; everything the file says is checked here, so that the encoders below can
// trust ids and lengths. What the file leaves out is never guessed in silence: it is absent, or the
// documented default of the kind is taken and said in `warnings`.

import { FormatError, UnsupportedError } from "../errors.ts";
import { stringBytes } from "../formats/string_table.ts";
import type { MetadataValue } from "../formats/source.ts";
import { assembleTokenizer, type TokenizerParts } from "./assemble.ts";
import { normalizeBertText, splitBertWords } from "./bert_text.ts";
import { byteBpeBytes, createByteBpe, missingBytes } from "./byte_bpe.ts";
import { BLANK_MARK, createCharBpe, mergeByScore, pieceBytes } from "./char_bpe.ts";
import { createCharsmap } from "./charsmap.ts";
import { endOfGenerationIds } from "./end_of_generation.ts";
import { checkGgufTextKeys } from "./gguf_text_keys.ts";
import { ggufInfillIds } from "./answer/infill_tokens.ts";
import { type GgufVocabulary, readGgufVocabulary } from "./vocabulary/gguf_vocabulary.ts";
import { compilePattern, PRE_TOKENIZERS, type PreTokenizer } from "./pre_tokenizers.ts";
import type { Tokenizer, TokenizerAlgorithm } from "./tokenizer_types.ts";
import { createUnigram } from "./unigram.ts";
import { TOKEN_KIND } from "./vocabulary/vocabulary.ts";
import { createWordPiece, type WordPieceMarks, wordPieceText } from "./word_piece.ts";

/** What a kind of tokenizer adds to the parts that all kinds share. */
interface KindParts {
  readonly algorithm: TokenizerAlgorithm;
  readonly encodeStretch: TokenizerParts["encodeStretch"];
  readonly unify?: TokenizerParts["unify"];
  readonly bytesOf: TokenizerParts["bytesOf"];
  readonly leadingBlanks: number;
  /** Whether BOS and EOS are added where the file does not say. */
  readonly addBos: boolean;
  readonly addEos: boolean;
  /** Role that is added behind: EOS, or SEP for BERT. */
  readonly endRole?: "eosId" | "sepId";
}

const KINDS: ReadonlyMap<string, (source: GgufVocabulary) => KindParts> = new Map([
  ["gpt2", buildByteBpe],
  ["llama", buildCharBpe],
  ["bert", buildWordPiece],
  ["t5", buildUnigram],
]);

/**
 * Builds a tokenizer from the `tokenizer.ggml.*` keys of a GGUF file. No intermediate JSON; the
 * merge table of a large vocabulary is hashed once and pairs are resolved when first met.
 *
 * @param metadata Key/value pairs of the file.
 * @param name File name, for messages.
 * @throws {FormatError} If a key is missing, of the wrong kind, too short, or an id is out of range.
 * @throws {UnsupportedError} If the tokenizer model or the pre-tokenizer is unknown; the message names it.
 */
export function tokenizerFromGguf(
  metadata: ReadonlyMap<string, MetadataValue>,
  name: string,
): Tokenizer {
  const model = metadata.get("tokenizer.ggml.model");
  const build = typeof model === "string" ? KINDS.get(model) : undefined;
  if (build === undefined) {
    const place = "tokenizer.ggml.model";
    const known = [...KINDS.keys()].join(", ");
    if (typeof model === "string") {
      throw new UnsupportedError(`tokenizer model ${JSON.stringify(model)} is not known`, {
        file: name,
        place,
        remedy: `Use a file with one of ${known}`,
      });
    }
    throw new FormatError(model === undefined ? "the key is missing" : "must be a string", {
      file: name,
      place,
    });
  }
  const source = readGgufVocabulary(metadata, name);
  source.warnings.push(...checkGgufTextKeys(metadata, { file: name, kind: model as string }));
  const parts = build(source);
  const { roles } = source;
  const endId = roles[parts.endRole ?? "eosId"];
  const addBos = (source.flag("add_bos_token") ?? parts.addBos) && roles.bosId !== undefined;
  const endKey = parts.endRole === "sepId" ? "add_sep_token" : "add_eos_token";
  const addEos = (source.flag(endKey) ?? parts.addEos) && endId !== undefined;
  for (const [key, id] of [["add_bos_token", roles.bosId], [endKey, endId]] as const) {
    if (!source.flag(key) || id !== undefined) continue;
    source.warnings.push(
      `${name}: tokenizer.ggml.${key} has no effect: the file names no such token`,
    );
  }
  const infillIds = ggufInfillIds(metadata, {
    file: name,
    vocabSize: source.vocabulary.texts.length,
  });
  const tokenizer = assembleTokenizer({
    vocabulary: source.vocabulary,
    algorithm: parts.algorithm,
    ...roles,
    endOfGenerationIds: endOfGenerationIds(source.vocabulary, source.endIds),
    prefix: addBos ? [roles.bosId as number] : [],
    suffix: addEos ? [endId as number] : [],
    leadingBlanks: parts.leadingBlanks,
    warnings: source.warnings,
    encodeStretch: parts.encodeStretch,
    unify: parts.unify,
    bytesOf: parts.bytesOf,
  });
  return infillIds ? { ...tokenizer, infillIds } : tokenizer;
}

function findPreTokenizer(source: GgufVocabulary): PreTokenizer {
  const place = "tokenizer.ggml.pre";
  const kind = source.metadata.get(place);
  if (kind === undefined) {
    source.warnings.push(
      `${source.name}: ${place} is missing; words are cut by the default patterns, which may not be ` +
        "the model's own",
    );
    return PRE_TOKENIZERS.get("default") as PreTokenizer;
  }
  const row = typeof kind === "string" ? PRE_TOKENIZERS.get(kind) : undefined;
  if (row !== undefined) return row;
  throw new UnsupportedError(`pre-tokenizer ${JSON.stringify(kind)} is not known`, {
    file: source.name,
    place,
    remedy:
      "Use a file whose pre-tokenizer is in engine/text/pre_tokenizers.ts, or add a row there",
  });
}

function buildByteBpe(source: GgufVocabulary): KindParts {
  const { vocabulary, warnings, name } = source;
  const row = findPreTokenizer(source);
  const lost = missingBytes(vocabulary);
  if (lost.length > 0) {
    warnings.push(
      `${name}: the vocabulary has no token for ${lost.length} of 256 bytes; text that needs them ` +
        "loses them, as in the reference tokenizer",
    );
  }
  const encode = createByteBpe({
    vocabulary,
    merges: { ranks: source.merges(), separator: " " },
    patterns: row.patterns.map(compilePattern),
    ignoreMerges: row.ignoreMerges ?? false,
  });
  const addSpace = source.flag("add_space_prefix") ?? false;
  return {
    algorithm: "bpe",
    encodeStretch: (text, isFirst, out) => encode(addSpace && isFirst ? " " + text : text, out),
    bytesOf: byteBpeBytes(vocabulary),
    leadingBlanks: addSpace ? 1 : 0,
    addBos: row.addBos ?? false,
    addEos: false,
  };
}

function buildCharBpe(source: GgufVocabulary): KindParts {
  const { vocabulary } = source;
  source.assumeRoles({ bosId: 1, eosId: 2, unkId: 0 });
  const encode = createCharBpe({
    vocabulary,
    merge: mergeByScore(vocabulary, source.scores()),
    unkId: source.roles.unkId,
    fuseUnknown: true,
    byteFallback: true,
    name: source.name,
  });
  const addSpace = source.flag("add_space_prefix") ?? true;
  return {
    algorithm: "bpe",
    encodeStretch: (text, _isFirst, out) =>
      encode((addSpace ? BLANK_MARK : "") + text.replaceAll(" ", BLANK_MARK), out),
    // A mark in the text is a blank, also where words added by hand are looked for.
    unify: (text) => text.replaceAll(BLANK_MARK, " "),
    bytesOf: pieceBytes(vocabulary, stringBytes),
    leadingBlanks: addSpace ? 1 : 0,
    addBos: true,
    addEos: false,
  };
}

function buildUnigram(source: GgufVocabulary): KindParts {
  const { vocabulary, name } = source;
  source.assumeRoles({ eosId: 1, unkId: 2 });
  const encode = createUnigram({
    vocabulary,
    scores: source.scores(),
    unkId: source.need("unkId", "unknown_token_id"),
    byteFallback: true,
  });
  const normalize = createCharsmap(source.bytes("precompiled_charsmap"), name);
  const addSpace = source.flag("add_space_prefix") ?? true;
  const squeeze = source.flag("remove_extra_whitespaces") ?? false;
  return {
    algorithm: "unigram",
    encodeStretch: (text, _isFirst, out) => {
      const normal = normalize(text);
      const kept = squeeze ? normal.replace(/ +/g, " ").replace(/^ | $/g, "") : normal;
      if (kept !== "") encode((addSpace ? BLANK_MARK : "") + kept.replaceAll(" ", BLANK_MARK), out);
    },
    bytesOf: pieceBytes(vocabulary, stringBytes),
    leadingBlanks: addSpace ? 1 : 0,
    addBos: false,
    addEos: true,
  };
}

function buildWordPiece(source: GgufVocabulary): KindParts {
  const { vocabulary } = source;
  source.assumeRoles({ bosId: 101, unkId: 100, sepId: 102 });
  const hasInsideMarks = vocabulary.texts.all().some((text) =>
    text.length > 2 && text.startsWith("##")
  );
  const marks: WordPieceMarks = hasInsideMarks
    ? { begin: "", inside: "##" }
    : { begin: BLANK_MARK, inside: "" };
  const encodeWord = createWordPiece({
    vocabulary,
    marks,
    unkId: source.need("unkId", "unknown_token_id"),
    maxWordLength: 100,
  });
  const lowercase = source.flag("normalizer.lowercase") ?? true;
  const stripAccents = source.flag("normalizer.strip_accents") ?? lowercase;
  const options = { cleanText: true, spaceHan: true, stripAccents, lowercase };
  return {
    algorithm: "word_piece",
    encodeStretch: (text, _isFirst, out) => {
      for (const word of splitBertWords(normalizeBertText(text, options))) encodeWord(word, out);
    },
    bytesOf(id) {
      const isWord = vocabulary.kinds[id] !== TOKEN_KIND.normal;
      const text = vocabulary.texts.get(id)!;
      return stringBytes(isWord ? " " + text : wordPieceText(text, { marks, cleanup: true }));
    },
    leadingBlanks: 1,
    addBos: true,
    addEos: true,
    endRole: "sepId",
  };
}
