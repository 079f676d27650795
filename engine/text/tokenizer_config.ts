// tokenizer_config.json: which tokens have a role, and settings that stand in tokenizer.json too. Where the two differ,
// those of the classes that build their tokenizer themselves count from here, as measured with transformers 5.24; what
// goes around a text does not: tokenizer.json's post-processor says it.

import { type FieldTable, rows } from "../formats/field_table.ts";
import { asNode, childNode, flagField, type JsonNode, textField } from "./tokenizer_json/fields.ts";

const role = { harmless: "no text is encoded by it" };
const size = { harmless: "padding and truncation are the caller's business" };
const klass = { harmless: "which class reads the vocabulary; tokenizer.json says how" };
const elsewhere = { harmless: "tokenizer.json has what follows from it" };
const media = { harmless: "for pictures and sounds" };

/** Its fields, as transformers and the models of the hub have them. */
export const TOKENIZER_FIELDS: FieldTable = {
  chat_template: "read",
  ...rows("read", "bos_token", "eos_token", "unk_token", "pad_token", "cls_token", "sep_token"),
  ...rows("read", "add_prefix_space", "added_tokens_decoder"),
  ...rows("read", "add_bos_token", "add_eos_token"), // where there is no tokenizer.json
  ...rows("read", "do_lower_case", "strip_accents", "tokenize_chinese_chars", "tokenizer_class"),
  mask_token: "read",
  ...rows(role, "additional_special_tokens", "extra_special_tokens", "*_token_type_id", "*_token"),
  ...rows(role, "model_specific_special_tokens", "*_token_id"),
  ...rows(size, "model_max_length", "max_length", "max_len", "padding_side", "truncation_side"),
  ...rows(size, "padding", "truncation*", "stride", "pad_to_multiple_of", "model_input_names"),
  ...rows(klass, "auto_map", "backend", "fast_tokenizer", "use_fast", "vocab_file", "merges_file"),
  ...rows(klass, "tokenizer_file", "name_or_path", "is_local", "special_tokens_map_file", "*_path"),
  ...rows(klass, "tokenizer_type", "_*", "transformers_version", "processor_class", "vocab_size"),
  ...rows(elsewhere, "legacy", "sp_model_kwargs", "from_slow", "keep_accents", "errors"),
  ...rows(elsewhere, "do_basic_tokenize", "never_split", "remove_space", "trim_offsets"),
  ...rows(elsewhere, "extra_ids", "spaces_between_special_tokens", "split_special_tokens"),
  ...rows(elsewhere, "src_lang", "tgt_lang", "language_codes", "additional_chars"),
  ...rows(elsewhere, "local_files_only"),
  ...rows(elsewhere, "use_default_system_prompt", "response_schema", "response_template"),
  ...rows(
    { harmless: "transcribe() has options for it" },
    "language",
    "task",
    "predict_timestamps",
  ),
  clean_up_tokenization_spaces: { harmless: "decoding gives every blank that was encoded" },
  fix_mistral_regex: { idle: "words are cut as tokenizer.json says" },
  ...rows(media, "image*", "video*", "audio*", "boi_*", "eoi_*", "*_processor*"),
};

/**
 * tokenizer.json with the settings of tokenizer_config.json.
 *
 * @throws {FormatError} If one is of the wrong kind.
 */
export function withTokenizerConfig(document: JsonNode, settings: unknown): JsonNode {
  if (settings === undefined || settings === null) return document;
  const config = asNode(settings, { path: "tokenizer_config", file: document.file });
  const family = textField(config, "tokenizer_class")?.replace(/(Tokenizer)?(Fast)?$/, "") ?? "";
  const changes = CHANGES.filter(({ of }) => of(family)).map((one) =>
    changed(document, config, one)
  );
  return { ...document, value: Object.assign({}, document.value, ...changes) };
}

interface Change {
  /** Whether a class has it, by its name without Tokenizer. */
  of(family: string): boolean;
  readonly part: string;
  /** Of the part as a whole; the settings are not for steps of a sequence. */
  readonly type: string;
  /** Names of the settings by those in the part. */
  readonly fields: Readonly<Record<string, string>>;
}

const BYTE_FAMILIES: ReadonlySet<string> = new Set([
  ...["GPT2", "Roberta", "Bart", "Mvp", "LED", "Longformer", "Deberta", "CodeGen", "GPTNeoX"],
  ...["Cohere", "Whisper", "Qwen2"],
]);

const CHANGES: readonly Change[] = [
  {
    of: (family) => family !== "PreTrained",
    part: "normalizer",
    type: "BertNormalizer",
    fields: {
      lowercase: "do_lower_case",
      strip_accents: "strip_accents",
      handle_chinese_chars: "tokenize_chinese_chars",
    },
  },
  {
    of: (family) => BYTE_FAMILIES.has(family),
    part: "pre_tokenizer",
    type: "ByteLevel",
    fields: { add_prefix_space: "add_prefix_space" },
  },
];

function changed(document: JsonNode, config: JsonNode, { part, type, fields }: Change) {
  const node = childNode(document, part);
  if (node?.value.type !== type) return {};
  const given = Object.entries(fields)
    .map(([field, key]) => [field, flagField(config, key)] as const)
    .filter(([, value]) => value !== undefined);
  return { [part]: { ...node.value, ...Object.fromEntries(given) } };
}
