// Keys of a GGUF file about its text, by the specification (ggml's docs/gguf.md) and llama.cpp's writer, and what
// becomes of each. Some say something in one kind of vocabulary only; elsewhere they are told.

import { FormatError } from "../errors.ts";
import { checkFields, type FieldTable, rows, useOf } from "../formats/field_table.ts";
import type { MetadataValue } from "../formats/source.ts";

const twin = { harmless: "tokenizer.ggml describes the same tokenizer" };
const pair = { harmless: "the spec says what stands between two texts" };
const words = { idle: "words of this kind of vocabulary are cut without it" };

/** Keys that begin with `tokenizer.`. */
export const GGUF_TEXT_FIELDS: FieldTable = {
  ...ggml("read", "model", "pre", "tokens", "token_type", "scores", "merges", "token_type_count"),
  ...ggml("read", "bos_token_id", "eos_token_id", "eot_token_id", "eom_token_id", "mask_token_id"),
  ...ggml("read", "unknown_token_id", "padding_token_id", "cls_token_id"),
  ...ggml("read", "seperator_token_id", "separator_token_id"),
  ...ggml("read", "add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix"),
  ...ggml("read", "remove_extra_whitespaces", "precompiled_charsmap", "normalizer.lowercase"),
  ...ggml("read", "normalizer.strip_accents"),
  ...ggml("read", "fim_*_token_id", "prefix_token_id", "suffix_token_id", "middle_token_id"),
  ...ggml({ idle: "generate() has logitBias" }, "suppress_tokens"),
  ...ggml({ idle: "token_type says which tokens are found whole" }, "added_tokens"),
  "tokenizer.huggingface.json": twin,
  "tokenizer.rwkv.world": twin,
  ...rows("read", "tokenizer.chat_template", "tokenizer.chat_template.tool_use"),
  "tokenizer.chat_template.default": { idle: "tokenizer.chat_template is the default" },
  "tokenizer.chat_template.*": { idle: "give it as option chatTemplate where it is wanted" },
  "tokenizer.chat_templates": { harmless: "names of the templates, which have keys of their own" },
};

const NORMALIZER = ["normalizer.lowercase", "normalizer.strip_accents"];
const SEPARATOR = ["seperator_token_id", "separator_token_id"];

/** What differs by `tokenizer.ggml.model`. */
const BY_KIND: Readonly<Record<string, FieldTable>> = {
  gpt2: {
    ...ggml({ harmless: "merges are in order" }, "scores"),
    ...ggml(pair, "add_sep_token", ...SEPARATOR),
    ...ggml(words, "remove_extra_whitespaces", "precompiled_charsmap", ...NORMALIZER),
  },
  llama: {
    ...ggml({ harmless: "scores say what is merged" }, "merges"),
    ...ggml(pair, "add_sep_token", ...SEPARATOR),
    ...ggml(words, "pre", "remove_extra_whitespaces", "precompiled_charsmap", ...NORMALIZER),
  },
  t5: {
    ...ggml({ harmless: "scores decide" }, "merges"),
    ...ggml(pair, "add_sep_token", ...SEPARATOR),
    ...ggml(words, "pre", ...NORMALIZER),
  },
  bert: {
    ...ggml({ harmless: "the longest piece counts" }, "scores", "merges"),
    ...ggml({ harmless: "add_sep_token says what stands behind a text" }, "add_eos_token"),
    ...ggml({ harmless: "words are cut at blanks" }, "add_space_prefix", "pre"),
    ...ggml(words, "remove_extra_whitespaces", "precompiled_charsmap"),
  },
};

/** The table of a kind of vocabulary. */
export function textFieldsOf(kind: string): FieldTable {
  return { ...GGUF_TEXT_FIELDS, ...BY_KIND[kind] };
}

/**
 * Holds the keys of a file against the table.
 *
 * @returns One sentence for each key that asks for something that is not done.
 */
export function checkGgufTextKeys(
  metadata: ReadonlyMap<string, MetadataValue>,
  { file, kind }: { readonly file: string; readonly kind: string },
): string[] {
  const table = textFieldsOf(kind);
  // By keys: to look at a value may take decoding a vocabulary.
  const open = [...metadata.keys()].filter((key) => {
    if (!key.startsWith("tokenizer.")) return false;
    const use = useOf(table, key);
    return use === undefined || typeof use === "object" && "idle" in use;
  });
  const values = Object.fromEntries(open.map((key) => [key, metadata.get(key)!]));
  return checkFields(values, table, { file, place: file });
}

/**
 * A chat template of a file; undefined where it has none.
 *
 * @throws {FormatError} If it is no text.
 */
export function ggufTemplate(
  metadata: ReadonlyMap<string, MetadataValue>,
  { file, key }: { readonly file: string; readonly key: string },
): string | undefined {
  const value = metadata.get(key);
  if (value === undefined || typeof value === "string") return value;
  throw new FormatError("must be a string", { file, place: key });
}

function ggml(use: FieldTable[string], ...names: readonly string[]): FieldTable {
  return rows(use, ...names.map((name) => `tokenizer.ggml.${name}`));
}
