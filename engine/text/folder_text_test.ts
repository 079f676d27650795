import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { FormatError } from "../errors.ts";
import { type FieldTable, useOf } from "../formats/field_table.ts";
import type { MetadataValue, WeightFile } from "../formats/source.ts";
import { tokenizerFromJson } from "./tokenizer.ts";
import { TOKENIZER_FIELDS } from "./tokenizer_config.ts";
import { GENERATION_FIELDS } from "./generation_config.ts";
import { readTextParts } from "./text_parts.ts";

const WORDS = ["<s>", "</s>", "<unk>", "Ġ", "a", "b", "c", "d"];

function byteLevel(add_prefix_space = false) {
  return {
    added_tokens: ["<s>", "</s>", "<unk>"].map((content, id) => ({ id, content, special: true })),
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space, use_regex: true },
    post_processor: { type: "ByteLevel" },
    decoder: { type: "ByteLevel" },
    model: {
      type: "BPE",
      vocab: Object.fromEntries(WORDS.map((text, id) => [text, id])),
      merges: [],
    },
  };
}

function folder(
  files: Record<string, unknown>,
  config: Record<string, MetadataValue> = {},
): WeightFile {
  const all: Record<string, unknown> = { "tokenizer.json": byteLevel(), ...files };
  return {
    kind: "safetensors",
    name: "toy",
    metadata: new Map(Object.entries(config)),
    tensors: new Map(),
    close: () => {},
    readText: (name) => {
      const content = all[name];
      return Promise.resolve(
        content === undefined || typeof content === "string" ? content : JSON.stringify(content),
      );
    },
  };
}

async function endsOf(files: Record<string, unknown>, config: Record<string, MetadataValue> = {}) {
  const { tokenizer } = await readTextParts(folder(files, config));
  return [...tokenizer().endOfGenerationIds].sort();
}

// generate() of transformers takes generation_config.json, and config.json where that names none; the tokenizer's
// own end counts too, since fine-tunes often change it alone.
Deno.test("ends stand in three files", async () => {
  const tokens = { "tokenizer_config.json": { eos_token: "</s>" } };
  assertEquals(await endsOf({}), []);
  assertEquals(await endsOf(tokens), [1]);
  assertEquals(await endsOf(tokens, { eos_token_id: 5 }), [1, 5]);
  assertEquals(await endsOf(tokens, { text_config: { eos_token_id: [5, 6] } }), [1, 5, 6]);
  const generation = { "generation_config.json": { eos_token_id: [4, 6] } };
  assertEquals(await endsOf({ ...tokens, ...generation }, { eos_token_id: 5 }), [1, 4, 6]);
  const silent = { "generation_config.json": { temperature: NaN, eos_token_id: null } };
  assertEquals(await endsOf(silent, { eos_token_id: 5 }), [5]);
  assertEquals(await endsOf({}, { eos_token_id: [-1, 7, 8, 1e9] }), [7]);
});

async function prompt(files: Record<string, unknown>, tools?: readonly unknown[]) {
  const { chatTemplate } = await readTextParts(folder(files));
  return chatTemplate?.render({ messages: [], ...tools && { tools } });
}

// The order of transformers 5.24 (tokenization_utils_base.py, get_chat_template).
Deno.test("chat templates stand in four places, the first counts", async () => {
  const processor = { "chat_template.json": { chat_template: "old" } };
  const config = { ...processor, "tokenizer_config.json": { chat_template: "config" } };
  const own = { ...config, "chat_template.jinja": "own" };
  assertEquals(await prompt({}), undefined);
  assertEquals(await prompt(processor), "old");
  assertEquals(await prompt(config), "config");
  assertEquals(await prompt(own), "own");
});

Deno.test("with tools, the template for tools is taken", async () => {
  const list = [{ name: "default", template: "plain" }, { name: "tool_use", template: "tools" }];
  const record = { default: "plain", tool_use: "tools", rag: "rag" };
  const beside = {
    "chat_template.jinja": "plain",
    "additional_chat_templates/tool_use.jinja": "tools",
  };
  for (
    const files of [
      beside,
      { "tokenizer_config.json": { chat_template: list } },
      { "tokenizer_config.json": { chat_template: record } },
    ]
  ) {
    assertEquals(await prompt(files), "plain");
    assertEquals(await prompt(files, [{}]), "tools");
  }
  assertEquals(
    await prompt({ "tokenizer_config.json": { chat_template: { rag: "x" } } }),
    undefined,
  );
  for (const chat_template of [3, [1], { default: 1 }, [{ name: "default" }]]) {
    const files = { "tokenizer_config.json": { chat_template } };
    await assertRejects(() => prompt(files), FormatError, "chat_template: is neither");
  }
});

/** Warnings for a field of one of the files. */
async function told(file: string, key: string, value: MetadataValue): Promise<readonly string[]> {
  return (await readTextParts(folder({ [file]: { [key]: value } }))).warnings;
}

// By name: an unusual value that the field may have.
const UNUSUAL: Readonly<Record<string, MetadataValue>> = {
  chat_template: "x",
  add_prefix_space: true,
  do_lower_case: true,
  strip_accents: true,
  tokenize_chinese_chars: false,
  added_tokens_decoder: { 4: { content: "a" } },
};

for (
  const [file, fields, strange] of [
    ["generation_config.json", GENERATION_FIELDS, "num_thoughts"],
    ["tokenizer_config.json", TOKENIZER_FIELDS, "shuffle_words"],
  ] as const satisfies readonly (readonly [string, FieldTable, string])[]
) {
  Deno.test(`every field of ${file} is read, or does nothing for a reason, or is told`, async () => {
    for (const [row, use] of Object.entries(fields)) {
      const key = row.replaceAll("*", "some");
      const value = UNUSUAL[key] ?? (key.endsWith("_token") || key.endsWith("_class") ? "a" : 7);
      const isTold = use !== "read" && "idle" in use;
      assertEquals(useOf(fields, key), use, key);
      const warnings = await told(file, key, value);
      assertEquals(warnings, isTold ? [`${file}: ${key} has no effect: ${use.idle}`] : []);
    }
    assertEquals(await told(file, strange, 1), [
      `${file}: ${strange} is not understood and has no effect`,
    ]);
  });
}

Deno.test("tokens that a config adds to the vocabulary are told", async () => {
  const warnings = await told("tokenizer_config.json", "added_tokens_decoder", {
    "1": { content: "</s>", special: true },
    "9": { content: "<new>" },
  });
  assertEquals(warnings.length, 1);
  assert(warnings[0]!.includes('"<new>" as 9'), warnings[0]);
});

// Ids of transformers 5.24 for the same files.
Deno.test("settings of tokenizer_config.json count where a class builds its tokenizer itself", () => {
  const ids = (tokenizer_class: string, config: Record<string, unknown>) =>
    tokenizerFromJson(byteLevel(), { tokenizerConfig: { tokenizer_class, ...config }, name: "toy" })
      .encode("ab");
  for (
    const family of [
      "GPT2Tokenizer",
      "RobertaTokenizerFast",
      "Qwen2Tokenizer",
      "CohereTokenizerFast",
    ]
  ) {
    assertEquals(ids(family, { add_prefix_space: true }), [3, 4, 5], family);
    assertEquals(ids(family, { add_prefix_space: false }), [4, 5], family);
  }
  for (const family of ["PreTrainedTokenizerFast", "LlamaTokenizerFast", "BloomTokenizerFast"]) {
    assertEquals(ids(family, { add_prefix_space: true }), [4, 5], family);
  }
  const around = { bos_token: "<s>", eos_token: "</s>", add_bos_token: true, add_eos_token: true };
  assertEquals(ids("LlamaTokenizerFast", around), [4, 5]);
  assertThrows(
    () => ids("GPT2Tokenizer", { add_prefix_space: "yes" }),
    FormatError,
    "true or false",
  );
});

// The same: [CLS] and [SEP], which that class adds, left out.
Deno.test("Bert's normalizer obeys tokenizer_config.json", () => {
  const texts = [
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[PAD]",
    "[MASK]",
    "a",
    "A",
    "é",
    "e",
    "É",
    "中中",
    "中",
  ];
  const document = {
    added_tokens: texts.slice(0, 5).map((content, id) => ({ id, content, special: true })),
    normalizer: {
      type: "BertNormalizer",
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: true,
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: null,
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: {
      type: "WordPiece",
      unk_token: "[UNK]",
      continuing_subword_prefix: "##",
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries(texts.map((text, id) => [text, id])),
    },
  };
  const ids = (tokenizer_class: string, config: Record<string, unknown>) =>
    tokenizerFromJson(document, { tokenizerConfig: { tokenizer_class, ...config }, name: "toy" })
      .encode("A É e 中中");
  for (const family of ["BertTokenizer", "DistilBertTokenizerFast", "MPNetTokenizer"]) {
    assertEquals(ids(family, {}), [5, 8, 8, 11, 11]);
    assertEquals(ids(family, { do_lower_case: false }), [6, 9, 8, 11, 11]);
    assertEquals(ids(family, { strip_accents: false }), [5, 7, 8, 11, 11]);
    assertEquals(ids(family, { do_lower_case: false, strip_accents: true }), [6, 0, 8, 11, 11]);
    assertEquals(ids(family, { tokenize_chinese_chars: false }), [5, 8, 8, 10]);
  }
  assertEquals(ids("PreTrainedTokenizerFast", { do_lower_case: false }), [5, 8, 8, 11, 11]);
});
