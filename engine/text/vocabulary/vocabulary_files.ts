// Tokenizers from the files that older checkpoints have instead of tokenizer.json: `vocab.json` with
// `merges.txt` (byte-level BPE) and `vocab.txt` (WordPiece). Each is written as the tokenizer.json that
// Hugging Face's own converter would make of it and goes through that reader, so there is one
// implementation of every component. Settings come from tokenizer_config.json and its companions.

import { FormatError, UnsupportedError } from "../../errors.ts";
import { asNode, flagField, type JsonNode, textField } from "../tokenizer_json/fields.ts";
import { tokenizerFromJson } from "../tokenizer_json/tokenizer.ts";
import { PRE_TOKENIZERS } from "../pre_tokenizers.ts";
import type { Tokenizer } from "../tokenizer_types.ts";

/** Parsed JSON files beside a vocabulary; each may be absent. */
export interface VocabularyCompanions {
  /** tokenizer_config.json */
  readonly config?: unknown;
  /** added_tokens.json: ids by text. */
  readonly added?: unknown;
  /** special_tokens_map.json: roles of tokens. */
  readonly roles?: unknown;
}

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
}

const ROLE_KEYS = [
  ...["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"],
];

/**
 * A byte-level BPE from `vocab.json` and `merges.txt`.
 *
 * @param vocab Parsed vocab.json: ids by text.
 * @param merges Text of merges.txt: a pair a line, in order of rank; a `#version` line is skipped.
 * @throws {FormatError} If a file breaks its format.
 * @throws {UnsupportedError} If words end in `</w>` and it is not CLIP's: GPT-1 has a normalizer of its own.
 */
export function tokenizerFromVocabMerges(
  vocab: unknown,
  { merges, file, companions = {} }: {
    readonly merges: string;
    readonly file: string;
    readonly companions?: VocabularyCompanions | undefined;
  },
): Tokenizer {
  const { value: ids } = asNode(vocab, { path: "vocab.json", file });
  const config = configOf(companions, file);
  const family = textField(config, "tokenizer_class")?.replace(/Fast$/, "");
  const isClip = family === CLIP;
  if (!isClip && Object.keys(ids).some((text) => text.endsWith("</w>"))) {
    throw new UnsupportedError(
      "its words end in </w>: how their text is normalized stands elsewhere",
      { file, remedy: "Put the model's tokenizer.json beside the weights" },
    );
  }
  const roles = rolesOf(companions, config);
  const added = addedTokens(ids, companions, file);
  const lines = merges.split("\n").map((line) => line.replace(/\r$/, ""))
    .filter((line, i) => line !== "" && !(i === 0 && line.startsWith("#version")));
  const document = {
    added_tokens: added,
    ...OWN_PATTERNS.get(family ?? "") ?? {
      normalizer: null,
      pre_tokenizer: {
        type: "ByteLevel",
        add_prefix_space: flagField(config, "add_prefix_space") ?? false,
        use_regex: true,
      },
    },
    post_processor: frameOf(config, isClip ? clipRoles(roles) : roles, added),
    decoder: { type: "ByteLevel" },
    model: {
      ...{ type: "BPE", vocab: ids, merges: lines },
      ...isClip && { end_of_word_suffix: "</w>", unk_token: contentOf(roles.unk_token) ?? null },
    },
  };
  const tokenizer = tokenizerFromJson(document, { tokenizerConfig: roles, name: file });
  if (family !== undefined && (OWN_PATTERNS.has(family) || GPT2_FAMILIES.has(family))) {
    return tokenizer;
  }
  const who = family === undefined ? "its class is not named" : `${family} is not known here`;
  const warning =
    `${file}: ${who}; words are cut by the patterns of GPT-2, which may not be the model's own`;
  return { ...tokenizer, warnings: [...tokenizer.warnings, warning] };
}

/** Classes of slow tokenizers that cut words as GPT-2 does. */
const GPT2_FAMILIES: ReadonlySet<string> = new Set([
  ...["GPT2Tokenizer", "RobertaTokenizer", "BartTokenizer", "BlenderbotTokenizer"],
  ...["CodeGenTokenizer", "LEDTokenizer", "LongformerTokenizer", "WhisperTokenizer"],
]);

const CLIP = "CLIPTokenizer";

/** The marks around a text are its beginning and end. */
function clipRoles(roles: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { ...roles, cls_token: roles.bos_token, sep_token: roles.eos_token };
}

/** Normalizer and patterns of classes that have their own. */
const OWN_PATTERNS: ReadonlyMap<string, Record<string, unknown>> = new Map([
  [CLIP, {
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "NFC" },
        { type: "Replace", pattern: { Regex: "\\s+" }, content: " " },
        { type: "Lowercase" },
      ],
    },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        {
          type: "Split",
          pattern: {
            Regex: "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+",
          },
          behavior: "Removed",
          invert: true,
        },
        { type: "ByteLevel", add_prefix_space: false, use_regex: true },
      ],
    },
  }],
  ["Qwen2Tokenizer", {
    normalizer: { type: "NFC" },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        {
          type: "Split",
          pattern: { Regex: PRE_TOKENIZERS.get("qwen2")!.patterns[0] },
          behavior: "Isolated",
          invert: false,
        },
        { type: "ByteLevel", add_prefix_space: false, use_regex: false },
      ],
    },
  }],
]);

/** [CLS] and [SEP] go around where both are named; else BOS in front where the config asks for it. */
function frameOf(
  config: JsonNode,
  roles: Readonly<Record<string, unknown>>,
  added: readonly AddedToken[],
): unknown {
  const find = (key: string) => added.find(({ content }) => content === contentOf(roles[key]));
  const [cls, sep, bos] = [find("cls_token"), find("sep_token"), find("bos_token")];
  if (cls && sep) {
    return { type: "RobertaProcessing", sep: [sep.content, sep.id], cls: [cls.content, cls.id] };
  }
  if (!bos || !flagField(config, "add_bos_token")) return null;
  return {
    type: "TemplateProcessing",
    single: [{ SpecialToken: { id: bos.content, type_id: 0 } }, {
      Sequence: { id: "A", type_id: 0 },
    }],
    special_tokens: { [bos.content]: { id: bos.content, ids: [bos.id], tokens: [bos.content] } },
  };
}

/** Text of a role, written plainly or as the record of an added token. */
function contentOf(role: unknown): unknown {
  return typeof role === "string"
    ? role
    : (role as { content?: unknown } | null | undefined)?.content;
}

/**
 * A WordPiece tokenizer from `vocab.txt`, a token a line.
 *
 * @throws {FormatError} If a token stands twice or `[UNK]`, `[CLS]`, `[SEP]` are missing.
 */
export function tokenizerFromVocabText(
  vocab: string,
  { file, companions = {} }: {
    readonly file: string;
    readonly companions?: VocabularyCompanions | undefined;
  },
): Tokenizer {
  const config = configOf(companions, file);
  const lines = vocab.replace(/\r?\n$/, "").split("\n").map((line) => line.replace(/\r$/, ""));
  const ids: Record<string, number> = Object.create(null);
  lines.forEach((text, id) => {
    if (text in ids) throw new FormatError(`${JSON.stringify(text)} stands twice`, { file });
    ids[text] = id;
  });
  const name = (key: string, usual: string) => textField(config, key) ?? usual;
  const [unk, cls, sep] = [
    name("unk_token", "[UNK]"),
    name("cls_token", "[CLS]"),
    name("sep_token", "[SEP]"),
  ];
  for (const text of [unk, cls, sep]) {
    if (!(text in ids)) throw new FormatError(`the vocabulary has no ${text}`, { file });
  }
  const roles = {
    bos_token: cls,
    eos_token: sep,
    unk_token: unk,
    pad_token: name("pad_token", "[PAD]"),
  };
  const extra = { mask_token: name("mask_token", "[MASK]") };
  const lowercase = flagField(config, "do_lower_case") ?? true;
  const document = {
    added_tokens: addedTokens(ids, { ...companions, roles: { ...roles, ...extra } }, file),
    normalizer: {
      type: "BertNormalizer",
      clean_text: true,
      handle_chinese_chars: flagField(config, "tokenize_chinese_chars") ?? true,
      strip_accents: flagField(config, "strip_accents") ?? null,
      lowercase,
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: { type: "BertProcessing", sep: [sep, ids[sep]], cls: [cls, ids[cls]] },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: { type: "WordPiece", unk_token: unk, continuing_subword_prefix: "##", vocab: ids },
  };
  return tokenizerFromJson(document, { tokenizerConfig: roles, name: file });
}

function configOf({ config }: VocabularyCompanions, file: string): JsonNode {
  return asNode(config ?? {}, { path: "tokenizer_config.json", file });
}

/** Roles of special_tokens_map.json, which tokenizer_config.json overrides. */
function rolesOf({ roles }: VocabularyCompanions, config: JsonNode): Record<string, unknown> {
  return { ...(roles as Record<string, unknown> | undefined), ...config.value };
}

/** Control tokens by their roles, and whatever added_tokens.json and the config add. */
function addedTokens(
  ids: Readonly<Record<string, unknown>>,
  companions: VocabularyCompanions,
  file: string,
): AddedToken[] {
  const config = configOf(companions, file);
  const found = new Map<string, AddedToken>();
  const add = (content: unknown, id: unknown, special: boolean, flags: object = {}) => {
    if (typeof content === "string" && typeof id === "number") {
      found.set(content, { ...flags, id, content, special });
    }
  };
  const { value: added } = asNode(companions.added ?? {}, { path: "added_tokens.json", file });
  for (const [content, id] of Object.entries(added)) add(content, id, false);
  const decoder = asNode(config.value.added_tokens_decoder ?? {}, {
    path: "added_tokens_decoder",
    file,
  });
  for (const [id, row] of Object.entries(decoder.value)) {
    const { content, special, ...flags } = (row ?? {}) as Record<string, unknown>;
    add(content, Number(id), special === true, flags);
  }
  const roles = rolesOf(companions, config);
  for (const key of ROLE_KEYS) {
    const content = contentOf(roles[key]);
    if (typeof content !== "string") continue;
    const known = found.get(content);
    const flags = typeof roles[key] === "object" ? roles[key] : {};
    const id = Object.hasOwn(ids, content) ? ids[content] : known?.id;
    add(content, id, true, { ...known, ...flags });
  }
  return [...found.values()].sort((a, b) => a.id - b.id);
}
