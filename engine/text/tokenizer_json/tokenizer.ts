// Tokenizers from Hugging Face's tokenizer.json, put together from the same cores as those of GGUF
// files. @huggingface/tokenizers would read the file too, but measured against the reference it differs
// (final sigma, Han characters beyond the basic plane, decoding of word pieces, an empty list of ids)
// and works on strings for every symbol.
//
// Left out: truncation and padding (the caller's business).

import { assembleTokenizer } from "../assemble.ts";
import { byteBpeBytes } from "../byte_bpe.ts";
import { pieceBytes } from "../char_bpe.ts";
import { endOfGenerationIds } from "../end_of_generation.ts";
import { readDecoder } from "./decoder.ts";
import {
  asNode,
  childNode,
  childNodes,
  type JsonNode,
  listField,
  needText,
  refuseFeature,
  refuseField,
} from "./fields.ts";
import { type JsonModel, readModel } from "./model.ts";
import { type Normalizer, readNormalizer } from "./normalizer.ts";
import { keepsStart } from "../normalized_tokens.ts";
import { readPreTokenizer } from "./pre_tokenizer.ts";
import { withTokenizerConfig } from "../tokenizer_config.ts";
import type { Tokenizer } from "../tokenizer_types.ts";
import { listOf } from "../vocabulary/text_list.ts";
import { TOKEN_KIND, type Vocabulary } from "../vocabulary/vocabulary.ts";

interface Frame {
  readonly prefix: readonly number[];
  readonly suffix: readonly number[];
}

const NO_FRAME: Frame = { prefix: [], suffix: [] };

/**
 * Builds a tokenizer from Hugging Face files.
 *
 * @param tokenizerJson Parsed `tokenizer.json`.
 * @param tokenizerConfig Parsed `tokenizer_config.json`: roles of special tokens, and settings that count before
 * those of `tokenizer.json`.
 * @param name File name, for messages.
 * @throws {FormatError} If the file breaks the format.
 * @throws {UnsupportedError} If it asks for a component that is not built; the message names it.
 *
 * @example
 * ```ts
 * import { tokenizerFromJson } from "@troodon/troodon/tokenizers";
 * import { assertEquals } from "@std/assert";
 *
 * const model = { type: "WordLevel", vocab: { "<unk>": 0, sea: 1, the: 2 }, unk_token: "<unk>" };
 * const json = { model, pre_tokenizer: { type: "WhitespaceSplit" } };
 * const tokenizer = tokenizerFromJson(json, { tokenizerConfig: undefined, name: "tokenizer.json" });
 * assertEquals(tokenizer.encode("the sea"), [2, 1]);
 * ```
 * @category Tokens and templates
 */
export function tokenizerFromJson(
  tokenizerJson: unknown,
  { tokenizerConfig, name }: { readonly tokenizerConfig: unknown; readonly name: string },
): Tokenizer {
  const document = withTokenizerConfig(
    asNode(tokenizerJson, { path: "", file: name }),
    tokenizerConfig,
  );
  const normalize = readNormalizer(childNode(document, "normalizer"));
  const { cut, isByteLevel } = readPreTokenizer(childNode(document, "pre_tokenizer"));
  const model = readModel(document, isByteLevel);
  refuseEmptied(document, model, normalize);
  const { vocabulary, algorithm, encodeWord, unkId, wordSuffix } = model;
  const decoder = readDecoder(childNode(document, "decoder"));
  const frame = readFrame(childNode(document, "post_processor"), vocabulary);
  const roles = readRoles(tokenizerConfig, vocabulary, name);
  const encodeNormal = (text: string, isFirst: boolean, out: number[]) => {
    if (text === "") return;
    for (const word of cut(text, isFirst)) if (word !== "") encodeWord(word, out);
  };
  const utf8 = new TextEncoder();
  const textBytes = (text: string) => utf8.encode(decoder.textOf(text));
  const shown = showNormalized(model, normalize);
  return assembleTokenizer({
    vocabulary,
    algorithm,
    ...roles,
    unkId: unkId ?? roles.unkId,
    endOfGenerationIds: endOfGenerationIds(vocabulary, [roles.eosId]),
    ...frame,
    leadingBlanks: decoder.leadingBlanks,
    warnings: [],
    manners: model.manners,
    ...(model.normalizedIds.size > 0
      ? { normalized: { ids: model.normalizedIds, normalize, encodeNormal } }
      : {}),
    encodeStretch: (text, isFirst, out) =>
      encodeNormal(normalize(text), isFirst && keepsStart(text, normalize), out),
    bytesOf: decoder.isByteLevel
      ? byteBpeBytes(shown, wordSuffix)
      : decoder.hasByteTokens
      ? pieceBytes(shown, textBytes)
      : (id) => textBytes(shown.texts.get(id)!),
  });
}

/** What decoding shows: tokens that are found in normalized text are decoded as that, as in the reference. */
function showNormalized(
  { vocabulary, normalizedIds }: JsonModel,
  normalize: Normalizer,
): Vocabulary {
  const { texts } = vocabulary;
  const changed = new Map<number, string>();
  for (const id of normalizedIds) {
    const [text, normal] = [texts.get(id)!, normalize(texts.get(id)!)];
    if (normal !== text) changed.set(id, normal);
  }
  if (changed.size === 0) return vocabulary;
  return { ...vocabulary, texts: listOf(texts.all().map((text, id) => changed.get(id) ?? text)) };
}

/** Nothing stands everywhere: what the reference does with a token that its normalizer empties is no intention. */
function refuseEmptied(document: JsonNode, model: JsonModel, normalize: Normalizer): void {
  for (const id of model.normalizedIds) {
    const text = model.vocabulary.texts.get(id)!;
    if (normalize(text) !== "") continue;
    refuseFeature(document, `the added token ${JSON.stringify(text)}, which becomes empty,`);
  }
}

/** Which ids go around a single text. */
function readFrame(node: JsonNode | undefined, vocabulary: Vocabulary): Frame {
  if (node === undefined) return NO_FRAME;
  const type = needText(node, "type");
  if (type === "TemplateProcessing") return readTemplate(node, vocabulary);
  if (type === "BertProcessing" || type === "RobertaProcessing") {
    return { prefix: [pairId(node, "cls", vocabulary)], suffix: [pairId(node, "sep", vocabulary)] };
  }
  if (type === "ByteLevel") return NO_FRAME;
  if (type === "Sequence") {
    const frames = childNodes(node, "processors").map((step) => readFrame(step, vocabulary));
    return {
      prefix: frames.toReversed().flatMap((frame) => frame.prefix),
      suffix: frames.flatMap((frame) => frame.suffix),
    };
  }
  return refuseFeature(node, `post-processor ${JSON.stringify(type)}`);
}

function pairId(node: JsonNode, key: string, { texts }: Vocabulary): number {
  const id = listField(node, key)[1];
  return typeof id === "number" && texts.get(id) !== undefined
    ? id
    : refuseField(node, { key, message: "must be a pair of text and id of the vocabulary" });
}

function readTemplate(node: JsonNode, { texts, ids }: Vocabulary): Frame {
  const known = childNode(node, "special_tokens");
  const prefix: number[] = [];
  const suffix: number[] = [];
  let isBehind = false;
  for (const part of childNodes(node, "single")) {
    const special = childNode(part, "SpecialToken");
    if (special === undefined) {
      if (isBehind) refuseFeature(node, "a template that repeats the text");
      isBehind = true;
      continue;
    }
    const text = needText(special, "id");
    const row = known === undefined ? undefined : childNode(known, text);
    const named = row === undefined ? [ids.get(text)] : listField(row, "ids");
    for (const id of named) {
      if (typeof id !== "number" || texts.get(id) === undefined) {
        return refuseField(special, {
          key: "id",
          message: `${JSON.stringify(text)} is not in the vocabulary`,
        });
      }
      (isBehind ? suffix : prefix).push(id);
    }
  }
  return { prefix, suffix };
}

/** Ids that tokenizer_config.json gives a role, where it is there. */
function readRoles(config: unknown, { ids, kinds }: Vocabulary, name: string) {
  if (config === undefined || config === null) return {};
  const node = asNode(config, { path: "tokenizer_config", file: name });
  const idOf = (key: string): number | undefined => {
    const value = Object.hasOwn(node.value, key) ? node.value[key] : undefined;
    const text = typeof value === "object" && value !== null
      ? (value as { content?: unknown }).content
      : value;
    const id = typeof text === "string" ? ids.get(text) : undefined;
    // Only control tokens may have a role: a word of the vocabulary that ends every answer is a fault.
    return id !== undefined && kinds[id] !== TOKEN_KIND.normal ? id : undefined;
  };
  return {
    bosId: idOf("bos_token") ?? idOf("cls_token"),
    eosId: idOf("eos_token") ?? idOf("sep_token"),
    unkId: idOf("unk_token"),
    padId: idOf("pad_token"),
    maskId: idOf("mask_token"),
  };
}
