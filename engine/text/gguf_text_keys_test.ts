// No key about a file's text is read past: each, at an unusual value, changes the tokenizer, or is refused or told by
// name, or is named as harmless with a reason, in every kind of vocabulary.

import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import {
  byteBpeKeys,
  charBpeKeys,
  type ToyKeys,
  toyTokenizer,
  unigramKeys,
  wordPieceKeys,
} from "../../tests/support/toy_vocabularies.ts";
import { FormatError, TroodonError } from "../errors.ts";
import { useOf } from "../formats/field_table.ts";
import type { MetadataValue } from "../formats/source.ts";
import {
  checkGgufTextKeys,
  GGUF_TEXT_FIELDS,
  ggufTemplate,
  textFieldsOf,
} from "./gguf_text_keys.ts";
import type { Tokenizer } from "./tokenizer_types.ts";

const KINDS = { byteBpeKeys, charBpeKeys, unigramKeys, wordPieceKeys };
/** From gguf-py's constants.py and llama-arch.cpp: what llama.cpp's converters write. */
const WRITTEN = [
  ...["model", "pre", "tokens", "token_type", "token_type_count", "scores", "merges"],
  ...["bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "cls", "mask"].map((role) =>
    `${role}_token_id`
  ),
  ...["add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix"],
  ...["remove_extra_whitespaces", "precompiled_charsmap", "suppress_tokens", "added_tokens"],
  ...["normalizer.lowercase", "normalizer.strip_accents"],
  ...["fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep", "prefix", "suffix"].map(
    (role) => `${role}_token_id`,
  ),
  "middle_token_id",
];
const TEXTS = [
  "hello  hello aaaa",
  " abc b",
  "Un\u00e9 hello, world",
  "caf\u00e9 ABC",
  "1234567 don't",
  "HELLO",
  "h\u00e9llo",
];

/** Everything that a tokenizer does. */
function behaviour(tokenizer: Tokenizer): unknown {
  const { warnings: _, endOfGenerationIds, ...rest } = tokenizer;
  const encoded = TEXTS.map((text) => {
    try {
      const ids = tokenizer.encode(text);
      return [ids, tokenizer.decode(ids), tokenizer.encode(text, { special: true })];
    } catch (error) {
      return String(error);
    }
  });
  const special = Array.from({ length: tokenizer.vocabSize }, (_, id) => tokenizer.isSpecial(id));
  const facts = Object.entries(rest).filter(([, value]) => typeof value !== "function");
  return [encoded, special, facts, [...endOfGenerationIds].sort()];
}

function unusual(keys: ToyKeys, key: string): MetadataValue[] {
  const last = (keys.tokens as string[]).length - 1;
  const value = keys[key];
  if (typeof value === "boolean") return [!value];
  if (key.startsWith("add_") || key.startsWith("normalizer") || key.startsWith("remove")) {
    return [true, false];
  }
  if (key === "added_tokens") return [["hello"]];
  if (key === "suppress_tokens") return [[last]];
  if (key === "precompiled_charsmap") return [new Uint8Array([1, 2, 3])];
  if (key === "token_type") return [(value as number[]).map(() => 3)];
  if (key === "scores") return [(keys.tokens as string[]).map((_, id) => id % 3)];
  if (key === "tokens") return [(value as string[]).toReversed()];
  if (key === "merges") return [["a a"]];
  return typeof value === "string" || key === "pre" ? ["llama3", "unusual"] : [last, 3];
}

function outcomeOf(all: ToyKeys, key: string): string {
  // The old name of a role counts where the new one is missing.
  const { bos_token_id: _, ...rest } = all;
  const keys = key === "cls_token_id" ? rest : all;
  const base = behaviour(toyTokenizer(keys));
  for (const value of unusual(keys, key)) {
    try {
      const changed = toyTokenizer({ ...keys, [key]: value });
      if (JSON.stringify(behaviour(changed)) !== JSON.stringify(base)) return "changed";
      if (changed.warnings.some((warning) => warning.includes(`ggml.${key} `))) return "told";
    } catch (error) {
      if (!(error instanceof TroodonError)) throw error;
      return "refused";
    }
  }
  const use = useOf(textFieldsOf(keys.model as string), `tokenizer.ggml.${key}`);
  return typeof use === "object" && "harmless" in use ? "harmless" : "read past";
}

for (const [kind, make] of Object.entries(KINDS)) {
  Deno.test(`no key of a vocabulary is read past: ${kind}`, () => {
    const keys = make();
    const past = WRITTEN.filter((key) => outcomeOf(keys, key) === "read past");
    // A spec reads how many types of texts there are.
    assertEquals(past, ["token_type_count"]);
    assertEquals(outcomeOf(keys, "brand_new"), "told");
    assertEquals(outcomeOf(keys, "suppress_tokens"), "told");
  });
}

Deno.test("every key that is written has a row", () => {
  for (const key of WRITTEN) {
    assert(Object.hasOwn(GGUF_TEXT_FIELDS, `tokenizer.ggml.${key}`) || key.startsWith("fim_"), key);
  }
});

Deno.test("the first token is [CLS] by its old key, and a hidden word the token that the file names", () => {
  const { bos_token_id: _, ...keys } = wordPieceKeys();
  const tokenizer = toyTokenizer({ ...keys, cls_token_id: 0, mask_token_id: 7 });
  assertEquals([tokenizer.bosId, tokenizer.prefixIds, tokenizer.maskId], [0, [0], 7]);
  assertEquals(toyTokenizer({ ...wordPieceKeys(), cls_token_id: 0 }).bosId, 2);
});

Deno.test("templates of other names are told, and one that is no text is refused", () => {
  const at = { file: "toy.gguf", kind: "gpt2" };
  const metadata = new Map<string, MetadataValue>([
    ["tokenizer.chat_template", "a"],
    ["tokenizer.chat_template.tool_use", "b"],
    ["tokenizer.chat_templates", ["rag", "tool_use"]],
    ["tokenizer.chat_template.rag", "c"],
  ]);
  const told = checkGgufTextKeys(metadata, at);
  assertEquals(told.length, 1);
  assertStringIncludes(told[0]!, "tokenizer.chat_template.rag has no effect");
  const key = "tokenizer.chat_template";
  assertEquals(ggufTemplate(metadata, { file: "toy.gguf", key }), "a");
  assertThrows(
    () => ggufTemplate(new Map([[key, ["a"]]]), { file: "toy.gguf", key }),
    FormatError,
    "toy.gguf, tokenizer.chat_template: must be a string",
  );
});
