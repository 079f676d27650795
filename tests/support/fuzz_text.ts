// What must hold for any tokenizer.json and any chat template: they are read and used within bounds, or
// they are refused with one of our errors. Used by `deno task fuzz` with many inputs and by
// tests/fuzz_text_test.ts with few.

import { TroodonError } from "../../engine/errors.ts";
import { compileChatTemplate, encodeChat } from "../../engine/text/chat_template.ts";
import { createStreamDecoder } from "../../engine/text/stream_decoder.ts";
import { type Tokenizer, tokenizerFromJson } from "../../engine/text/tokenizer.ts";
import { byteBpeKeys, toyTokenizer } from "./toy_vocabularies.ts";

const TEXTS: readonly string[] = [
  "",
  "Hello, world!",
  " a\n\tb  <s>[CLS]<|im_end|> naïve 👋 中文 ▁x",
  "aaaa",
];

/** Runs what strangers' input reaches; our own errors are an answer, everything else is a fault. */
function answer(run: () => void): void {
  try {
    run();
  } catch (error) {
    if (!(error instanceof TroodonError)) throw error;
    if (error.message.includes("\n")) throw new Error(`Message of several lines: ${error.message}`);
  }
}

/**
 * Reads `input` as tokenizer.json and uses what comes of it.
 *
 * @throws {Error} If anything but an error of ours comes out, ids leave the vocabulary, or streamed text
 * differs from decoded text.
 */
export function fuzzTokenizerJson(input: string): void {
  let document: unknown;
  try {
    document = JSON.parse(input);
  } catch (error) {
    if (error instanceof SyntaxError) return;
    throw error;
  }
  answer(() => {
    const tokenizer = tokenizerFromJson(document, {
      tokenizerConfig: { eos_token: "</s>" },
      name: "fuzz",
    });
    for (const text of TEXTS) for (const special of [false, true]) check(tokenizer, text, special);
  });
}

function check(tokenizer: Tokenizer, text: string, special: boolean): void {
  const ids = tokenizer.encode(text, { special });
  const decoder = createStreamDecoder(tokenizer);
  const streamed = ids.map((id) => decoder.push(id)).join("") + decoder.finish();
  const whole = tokenizer.decode(ids);
  if (streamed !== whole) {
    throw new Error(`streamed ${JSON.stringify(streamed)}, decoded ${JSON.stringify(whole)}`);
  }
}

const TOKENIZER: Tokenizer = toyTokenizer(byteBpeKeys());

/**
 * Reads `input` as a chat template and renders conversations with it.
 *
 * @throws {Error} If anything but an error of ours comes out, or a message's text becomes a control token.
 */
export function fuzzTemplate(input: string): void {
  answer(() => {
    const template = compileChatTemplate(input, "fuzz");
    const call = { function: { name: "f", arguments: { city: "Paris" } } };
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "One?" },
      { role: "assistant", content: null, tool_calls: [call] },
    ];
    encodeChat(TOKENIZER, template, messages, {
      tools: [{ name: "f" }],
      addGenerationPrompt: true,
    });
    const [plain, hostile] = ["", "<|im_end|>"].map((content) =>
      encodeChat(TOKENIZER, template, [{ role: "user", content: `x${content}` }])
        .filter((id) => TOKENIZER.isSpecial(id)).length
    );
    // A template may look at its messages, but only to write its own tokens.
    if (hostile > plain && !/content/.test(input)) throw new Error("a message gave control tokens");
  });
}

/** Good inputs to mutate. */
export function tokenizerJsonSeeds(): string[] {
  const added_tokens = [
    { id: 0, content: "<unk>", special: true },
    { id: 1, content: "<s>", special: true, lstrip: true, rstrip: true },
    { id: 2, content: "</s>", special: true },
  ];
  const vocab = { "<unk>": 0, "<s>": 1, "</s>": 2, "▁": 3, "a": 4, "▁a": 5, "aa": 6, "<0x0A>": 7 };
  const template = {
    type: "TemplateProcessing",
    single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
    special_tokens: { "<s>": { id: "<s>", ids: [1], tokens: ["<s>"] } },
  };
  return [
    {
      added_tokens,
      normalizer: {
        type: "Sequence",
        normalizers: [{ type: "NFC" }, { type: "Prepend", prepend: "▁" }],
      },
      pre_tokenizer: { type: "Metaspace", prepend_scheme: "first", split: false },
      post_processor: template,
      decoder: {
        type: "Sequence",
        decoders: [
          { type: "Replace", pattern: { String: "▁" }, content: " " },
          { type: "ByteFallback" },
          { type: "Fuse" },
          { type: "Strip", content: " ", start: 1, stop: 0 },
        ],
      },
      model: {
        type: "BPE",
        vocab,
        merges: [["▁", "a"], ["a", "a"]],
        unk_token: "<unk>",
        byte_fallback: true,
        fuse_unk: true,
      },
    },
    {
      added_tokens,
      pre_tokenizer: {
        type: "Sequence",
        pretokenizers: [
          { type: "Split", pattern: { Regex: "\\p{N}{1,3}| ?\\p{L}+" }, behavior: "Isolated" },
          { type: "ByteLevel", add_prefix_space: true, use_regex: false },
        ],
      },
      decoder: { type: "ByteLevel" },
      model: { vocab: { ...vocab, "Ġ": 8, "Ġa": 9 }, merges: ["a a", "Ġ a"], ignore_merges: true },
    },
    {
      added_tokens,
      normalizer: { type: "BertNormalizer", lowercase: true, strip_accents: null },
      pre_tokenizer: { type: "BertPreTokenizer" },
      decoder: { type: "WordPiece", prefix: "##", cleanup: true },
      model: { type: "WordPiece", vocab: { ...vocab, "##a": 8 }, unk_token: "<unk>" },
    },
    {
      added_tokens,
      normalizer: { type: "Precompiled", precompiled_charsmap: "BAAAAAAAAAAA" },
      pre_tokenizer: { type: "Metaspace", replacement: "▁", add_prefix_space: true },
      decoder: { type: "Metaspace", replacement: "▁" },
      model: {
        type: "Unigram",
        unk_id: 0,
        vocab: [["<unk>", 0], ["a", -1], ["▁a", -2.5], ["aa", -3]],
      },
    },
  ].map((document) => JSON.stringify(document));
}

/** Good inputs to mutate. */
export function templateSeeds(): string[] {
  return [
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + (m.content or '') | trim }}" +
    "{{- '<|im_end|>' ~ \"\\n\" }}{% endfor %}{% if add_generation_prompt %}x{% endif %}",
    "{%- set ns = namespace(found=false, n=0) -%}{% macro f(x, y=2) %}{{ x * y }}{{ caller() }}" +
    "{% endmacro %}{% call f(3) %}c{% endcall %}{%- for i in range(3) if (i is odd) recursive -%}" +
    "{% set ns.n = ns.n + loop.index %}{{ loop.cycle('a', 'b') }}{% else %}none{% endfor %}{{ ns.n }}",
    "{# c #}{% raw %}{{ x }}{% endraw %}{% set t %}a{% endset %}{{ t | upper | replace('A', 'b') }}" +
    "{{ tools | tojson(indent=2) if tools is defined and tools is not none else [1, 2.5, {'a': none}] }}",
    "{{ messages[0].content[::-1][1:3] }}{{ messages | map(attribute='role') | join(', ') }}" +
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length // 2 ** 3 % 5 - -1 }}" +
    "{% if not a and 'x' in 'xyz' or b %}{% elif 1 < 2 <= 3 %}{% endif %}{{ 'a' 'b' \"\\u00e9\" }}",
  ];
}
