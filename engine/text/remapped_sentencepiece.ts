// SentencePiece models whose pieces have other ids than the model file gives them: M2M100, NLLB and others
// that come from fairseq keep the ids in vocab.json, and tokens of languages behind them in the order of
// `additional_special_tokens`. Texts are cut by the model, and each piece is looked up by its text.
// The language in front of a text is the caller's choice, so only the end token is added.

import { FormatError } from "../errors.ts";
import { assembleTokenizer } from "./assemble.ts";
import { endOfGenerationIds } from "./end_of_generation.ts";
import { asNode, listField, textField } from "./tokenizer_json/fields.ts";
import { tokenizerFromSentencePiece } from "./sentencepiece.ts";
import type { Tokenizer } from "./tokenizer_types.ts";
import type { VocabularyCompanions } from "./vocabulary/vocabulary_files.ts";
import { createVocabulary, TOKEN_KIND } from "./vocabulary/vocabulary.ts";

/** Ids may leave holes, but not many more of them than tokens. */
const MAX_HOLES = 1 << 16;

/**
 * Builds a tokenizer from a `.model` file and the ids of its pieces.
 *
 * @param vocab Parsed vocab.json: ids by text.
 * @throws {FormatError} If a file breaks its format or an id is none.
 */
export function tokenizerFromRemapped(
  model: Uint8Array,
  { vocab, file }: { readonly vocab: unknown; readonly file: string },
  { config, roles }: VocabularyCompanions = {},
): Tokenizer {
  const base = tokenizerFromSentencePiece(model, file, { addBos: false, addEos: false });
  const settings = asNode(
    { ...roles as Record<string, unknown>, ...config as Record<string, unknown> },
    { path: "", file },
  );
  const texts = readTexts(vocab, file);
  const languages = listField(settings, "additional_special_tokens").filter((token) =>
    typeof token === "string"
  );
  const added = languages.filter((token) => !texts.includes(token));
  const all = [...texts, ...added];
  const controls = ["bos_token", "eos_token", "unk_token", "pad_token"].map((key) =>
    textField(settings, key)
  );
  const isControl = new Set([...languages, ...controls, "<s>", "</s>", "<pad>"]);
  const kinds = all.map((text) => isControl.has(text) ? TOKEN_KIND.control : TOKEN_KIND.normal);
  const vocabulary = createVocabulary(all, Uint8Array.from(kinds));
  const idOf = (text: string | undefined) =>
    text === undefined ? undefined : vocabulary.ids.get(text);
  const [bosId, eosId, unkId, padId] = [
    idOf(controls[0] ?? "<s>"),
    idOf(controls[1] ?? "</s>"),
    idOf(controls[2] ?? "<unk>"),
    idOf(controls[3] ?? "<pad>"),
  ];
  if (unkId === undefined) throw new FormatError("has no unknown token", { file });
  vocabulary.kinds[unkId] = TOKEN_KIND.unknown;
  const utf8 = new TextEncoder();
  return assembleTokenizer({
    vocabulary,
    algorithm: base.algorithm,
    bosId,
    eosId,
    unkId,
    padId,
    endOfGenerationIds: endOfGenerationIds(vocabulary, [eosId]),
    prefix: [],
    suffix: eosId === undefined ? [] : [eosId],
    leadingBlanks: base.leadingBlanks,
    warnings: base.warnings,
    encodeStretch(text, _isFirst, out) {
      for (const id of base.encode(text)) out.push(vocabulary.ids.get(base.tokenText(id)) ?? unkId);
    },
    bytesOf(id) {
      const own = base.idOf(all[id]);
      return own === undefined ? utf8.encode(all[id]) : base.tokenBytes(own);
    },
  });
}

function readTexts(vocab: unknown, file: string): string[] {
  const entries = Object.entries(asNode(vocab, { path: "vocab.json", file }).value);
  const texts: string[] = [];
  for (const [text, id] of entries) {
    const isId = typeof id === "number" && Number.isInteger(id) && id >= 0 &&
      id < entries.length + MAX_HOLES;
    if (!isId) throw new FormatError(`${JSON.stringify(id)} is no token id`, { file, place: text });
    texts[id] = text;
  }
  return Array.from(texts, (text) => text ?? "");
}
