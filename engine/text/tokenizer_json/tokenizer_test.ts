import { assertEquals, assertThrows } from "@std/assert";
import { readFixture } from "../../../tests/support/fixtures.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { BYTE_CHARS } from "../byte_level.ts";
import { tokenizerFromJson } from "../tokenizer.ts";

interface FileCases {
  readonly name: string;
  readonly tokenizer: string;
  readonly cases: readonly {
    readonly text: string;
    readonly ids: readonly number[];
    readonly pieces: readonly string[];
    readonly decoded: string;
  }[];
}

const FOLDERS: Readonly<Record<string, string>> = {
  "public/pc-tok-02": "marks of blanks stand where the tokenizer's own rule puts them",
  "public/pc-tok-05": "added tokens are looked for where they say",
  "public/pc-tok-06": "inverted patterns are cut as the reference does",
};

for (const [folder, rule] of Object.entries(FOLDERS)) {
  const files: readonly FileCases[] = JSON.parse(readFixture(`${folder}/expected.json`)).cases;
  for (const { name, tokenizer: file, cases } of files) {
    Deno.test(`${rule}: ${name}`, () => {
      const tokenizer = tokenizerFromJson(
        JSON.parse(readFixture(`${folder}/${file}`)),
        { tokenizerConfig: undefined, name: file },
      );
      for (const { text, ids, pieces, decoded } of cases) {
        const options = { special: true, addSpecial: name === "with_bos" };
        assertEquals(tokenizer.encode(text, options), ids, text);
        assertEquals(ids.map((id) => tokenizer.tokenText(id)), pieces);
        // The reference shows an added token as it was found, not as it is written.
        if (folder !== "public/pc-tok-05") assertEquals(tokenizer.decode(ids), decoded);
      }
    });
  }
}

const WORDS = { "[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3, "##s": 4, ",": 5, "σ": 6 };

/** A small BERT. */
function wordPieceJson(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const added = Object.entries(WORDS).slice(0, 3);
  return {
    added_tokens: added.map(([content, id]) => ({ content, id, special: true })),
    normalizer: { type: "BertNormalizer", lowercase: true },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: {
      type: "TemplateProcessing",
      single: [
        { SpecialToken: { id: "[CLS]", type_id: 0 } },
        { Sequence: { id: "A", type_id: 0 } },
        { SpecialToken: { id: "[SEP]", type_id: 0 } },
      ],
      special_tokens: { "[CLS]": { ids: [1] }, "[SEP]": { ids: [2] } },
    },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: { type: "WordPiece", unk_token: "[UNK]", vocab: WORDS },
    ...changes,
  };
}

Deno.test("BERT's rules: lower case without a final sigma, Han characters alone, unknown words", () => {
  const bert = tokenizerFromJson(wordPieceJson(), {
    tokenizerConfig: { cls_token: "[CLS]" },
    name: "toy",
  });
  assertEquals(bert.encode("Hellos, HELLO"), [1, 3, 4, 5, 3, 2]);
  assertEquals(bert.encode("Σ", { addSpecial: false }), [6]);
  assertEquals(bert.encode("𠀀𠀁 x", { addSpecial: false }), [0, 0, 0]);
  assertEquals(bert.encode("[CLS]", { addSpecial: false }), [0, 0, 0]);
  assertEquals(bert.encode("[CLS]", { addSpecial: false, special: true }), [1]);
  assertEquals(bert.decode([3, 4, 5, 3]), "hellos, hello");
  assertEquals(bert.decode([]), "");
  assertEquals(bert.bosId, 1);
});

/** A small byte-level BPE, with the parts a test wants. */
function bpeJson(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const tokens = [...BYTE_CHARS, "he", "hell", "ll", "Ġhe"];
  return {
    added_tokens: [{ id: tokens.length, content: "<|end|>", special: true, rstrip: true }],
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false },
    decoder: { type: "ByteLevel" },
    model: {
      type: "BPE",
      vocab: Object.fromEntries(tokens.map((text, id) => [text, id])),
      merges: [["h", "e"], ["l", "l"], ["he", "ll"], ["Ġ", "he"]],
    },
    ...changes,
  };
}

Deno.test("a byte-level file encodes bytes, and a token takes the blanks that belong to it", () => {
  const tokenizer = tokenizerFromJson(bpeJson(), {
    tokenizerConfig: { eos_token: { content: "<|end|>" } },
    name: "toy",
  });
  const pieces = (text: string) =>
    tokenizer.encode(text, { special: true }).map((id) => tokenizer.tokenText(id));
  assertEquals(pieces("hell he"), ["hell", "Ġhe"]);
  assertEquals(pieces("he<|end|>\n he"), ["he", "<|end|>", "he"]);
  assertEquals(tokenizer.decode(tokenizer.encode("naïve 👋")), "naïve 👋");
  assertEquals([...tokenizer.endOfGenerationIds], [260]);
});

Deno.test("merges reach over bytes that have no token, and whole words stand alone", () => {
  const tokens = BYTE_CHARS.filter((char) => char !== BYTE_CHARS[6]);
  const vocab = Object.fromEntries([...tokens, "><"].map((text, id) => [text, id]));
  const lost = tokenizerFromJson(
    bpeJson({ added_tokens: [], model: { type: "BPE", vocab, merges: ["> <"] } }),
    { tokenizerConfig: undefined, name: "toy" },
  );
  // Hugging Face's tokenizers 0.23.3 drops the byte before it merges.
  assertEquals(lost.encode(">\u0006<"), [vocab["><"]]);
  const added_tokens = [{ id: 260, content: "xy", normalized: false, single_word: true }];
  const whole = tokenizerFromJson(bpeJson({ added_tokens }), {
    tokenizerConfig: undefined,
    name: "toy",
  });
  const isFound = (text: string) => whole.encode(text).includes(260);
  assertEquals(["xy", "a xy.", "xy ", "txy", "xy_", "axy", "\u4e2dxy"].map(isFound), [
    ...[true, true, true],
    ...[false, false, false, false],
  ]);
});

Deno.test("words are cut by the patterns of the file, in its own dialect", () => {
  const split = (pattern: unknown, behavior: string, invert = false) => ({
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern, behavior, invert },
        { type: "ByteLevel", add_prefix_space: false, use_regex: false },
      ],
    },
  });
  const encode = (changes: Record<string, unknown>, text: string) => {
    const tokenizer = tokenizerFromJson(bpeJson(changes), {
      tokenizerConfig: undefined,
      name: "toy",
    });
    return tokenizer.encode(text).map((id) => tokenizer.tokenText(id));
  };
  const possessive = { Regex: String.raw`[^\r\n\p{L}\p{N}]?+\p{L}++|\s+` };
  assertEquals(encode(split(possessive, "Isolated"), "hehe he"), ["he", "he", "Ġhe"]);
  assertEquals(encode(split({ String: "h" }, "MergedWithNext"), "hehe"), ["he", "he"]);
  assertEquals(encode(split({ String: "h" }, "MergedWithPrevious"), "ehe"), ["e", "h", "e"]);
  assertEquals(encode(split({ String: "x" }, "Removed"), "hexhe"), ["he", "he"]);
  assertEquals(encode(split({ String: "l" }, "Contiguous"), "hell"), ["he", "ll"]);
  assertEquals(encode(split({ String: "l" }, "Isolated"), "hell"), ["he", "l", "l"]);
});

Deno.test("what a file asks for and is not built is refused by name and place", () => {
  const refused: [Record<string, unknown>, string][] = [
    [{ normalizer: { type: "Nmt" } }, 'toy, normalizer: normalizer "Nmt" is not supported'],
    [{ pre_tokenizer: { type: "UnicodeScripts" } }, 'pre-tokenizer "UnicodeScripts"'],
    [{ decoder: { type: "CTC" } }, 'decoder "CTC"'],
    [{ post_processor: { type: "New" } }, 'post-processor "New"'],
    [{ model: { type: "Word2Vec", vocab: {} } }, 'model "Word2Vec"'],
  ];
  for (const [changes, message] of refused) {
    assertThrows(
      () => tokenizerFromJson(wordPieceJson(changes), { tokenizerConfig: null, name: "toy" }),
      UnsupportedError,
      message,
    );
  }
});

Deno.test("a file that breaks the format is refused with the field's path", () => {
  const refused: [Record<string, unknown>, string][] = [
    [{ model: undefined }, "toy, model: the field is missing"],
    [{ model: { type: "WordPiece", vocab: { a: -1 } } }, 'model.vocab["a"]: -1 is no token id'],
    [{ model: { type: "WordPiece", vocab: { a: 1e9 } } }, "the highest id is 1000000000"],
    [{ model: { type: "WordPiece", vocab: { a: 0 } } }, "unk_token"],
    [{ model: { type: "Unigram", vocab: [["a"]] } }, "model.vocab[0]"],
    [{ model: { type: "Unigram", vocab: [["a", 0]], unk_id: 7 } }, "model.unk_id"],
    [{ model: { type: "BPE", vocab: { a: 0 }, merges: ["ab"] } }, "model.merges[0]"],
    [{ normalizer: { type: 5 } }, "normalizer.type: must be a string"],
    [{ normalizer: { type: "Precompiled", precompiled_charsmap: "?" } }, "is not base64"],
    [{ pre_tokenizer: { type: "Split", pattern: { Regex: "(" } } }, "pre_tokenizer.pattern"],
    [{ added_tokens: [5] }, "added_tokens[0]: must be an object"],
  ];
  for (const [changes, message] of refused) {
    assertThrows(
      () => tokenizerFromJson(wordPieceJson(changes), { tokenizerConfig: null, name: "toy" }),
      FormatError,
      message,
    );
  }
  assertThrows(
    () => tokenizerFromJson([], { tokenizerConfig: null, name: "toy" }),
    FormatError,
    "toy, the document: ",
  );
});

const SOME_BYTES = [
  "<unk>",
  "a",
  "b",
  "▁",
  "<0xC3>",
  "<0xE2>",
  "<0x82>",
  "<0xAC>",
  "<0x0A>",
  "<0xa9>",
];
const BYTE_TEXTS = ["a€b", "é€é", "\n\r", "éé", "<0xC3>é", "👋€", "é"];

Deno.test("some of the byte tokens give the ids that tokenizers 0.23.3 gives", () => {
  const vocab = Object.fromEntries(SOME_BYTES.map((text, id) => [text, id]));
  const bpe = { type: "BPE", vocab, merges: [], unk_token: "<unk>", byte_fallback: true };
  const scored = SOME_BYTES.map((text, id) => [text, id === 0 ? 0 : id < 4 ? -1 : -2]);
  const unigram = { type: "Unigram", vocab: scored, unk_id: 0, byte_fallback: true };
  const idsOf = (model: unknown) => {
    const tokenizer = tokenizerFromJson({ model }, { tokenizerConfig: null, name: "toy" });
    return BYTE_TEXTS.map((text) => tokenizer.encode(text, { addSpecial: false }).join(" "));
  };
  assertEquals(
    idsOf({ ...bpe, fuse_unk: false }),
    ["1 5 6 7 2", "5 6 7 0 0", "8 0", "0 0", "0 0 0 0 0 0 0", "5 6 7 0", "0"],
  );
  assertEquals(
    idsOf({ ...bpe, fuse_unk: true }),
    ["1 5 6 7 2", "5 6 7 0", "8 0", "0", "0", "5 6 7 0", "0"],
  );
  assertEquals(idsOf(unigram), ["1 5 6 7 2", "0", "0", "0", "4 0", "0", "0"]);
});

Deno.test("tokens that are found in normalized text are decoded as it, as tokenizers 0.23.3 does", () => {
  const added_tokens = [{ id: 2, content: "a B", special: false, normalized: true }];
  const normalizers = [
    { type: "Lowercase" },
    { type: "Prepend", prepend: "▁" },
    { type: "Replace", pattern: { String: " " }, content: "▁" },
  ];
  const decoders = [
    { type: "Replace", pattern: { String: "▁" }, content: " " },
    { type: "Fuse" },
    { type: "Strip", content: " ", start: 1, stop: 0 },
  ];
  const tokenizer = tokenizerFromJson(
    {
      added_tokens,
      normalizer: { type: "Sequence", normalizers },
      model: { type: "BPE", vocab: { "▁": 0, x: 1 }, merges: [] },
      decoder: { type: "Sequence", decoders },
    },
    { tokenizerConfig: null, name: "toy" },
  );
  const ids = tokenizer.encode("x A b x", { addSpecial: false });
  assertEquals(ids, [0, 1, 2, 0, 1]);
  assertEquals(tokenizer.decode(ids), "x a b x");
});
