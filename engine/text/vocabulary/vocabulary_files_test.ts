import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import fc from "fast-check";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { joinBytes } from "../../../tests/support/write_gguf.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { BYTE_CHARS } from "../byte_level.ts";
import { tokenizerFromLlama2c } from "../llama2c_tokenizer.ts";
import { createMaximumMatching } from "../maximum_matching.ts";
import { tokenizerFromSentencePiece } from "../sentencepiece.ts";
import { readSentencePieceModel } from "../sentencepiece_model.ts";
import { isTiktoken, tokenizerFromTiktoken } from "../tiktoken.ts";
import { TIKTOKEN_KINDS, type TiktokenKind } from "../tiktoken_kinds.ts";
import { findTokenizer } from "../tokenizer_files.ts";
import { tokenizerFromVocabMerges, tokenizerFromVocabText } from "./vocabulary_files.ts";

const PLAIN = { addSpecial: false } as const;
const UTF8 = new TextEncoder();
const TEXTS = fc.string({ unit: "binary", maxLength: 40 });
const MODEL = fixturePath("models/llama_formats/tokenizer.model");

/** All bytes, some pairs, and one control token. */
const KIND: TiktokenKind = {
  patterns: TIKTOKEN_KINDS.get(50256)!.patterns,
  control: { "<|end|>": 300 },
  eos: "<|end|>",
};

function rankFile(...words: string[]): string {
  const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
  const tokens = [...bytes, ...words.map((word) => UTF8.encode(word))];
  return tokens.map((token, rank) => `${token.toBase64()} ${rank}\n`).join("");
}

Deno.test("a rank file merges the lowest rank first and takes whole words at once", () => {
  const tokenizer = tokenizerFromTiktoken(rankFile("ab", "bc", "xyz"), { file: "r", kind: KIND });
  assertEquals(tokenizer.encode("abc"), [256, 99]);
  assertEquals(tokenizer.encode("xyz"), [258], "no merges lead there");
  assertEquals(tokenizer.encode("xyzx"), [120, 121, 122, 120]);
  assertEquals(tokenizer.encode("<|end|>").length, 7);
  assertEquals(tokenizer.encode("<|end|>", { special: true }), [300]);
  assertEquals([tokenizer.vocabSize, tokenizer.eosId], [301, 300]);
});

Deno.test("any text comes back from a rank file, and from maximum matching over it", () => {
  const tokenizer = tokenizerFromTiktoken(rankFile("ab", "é", "\u4e2d", "  "), {
    file: "r",
    kind: KIND,
  });
  for (const each of [tokenizer, createMaximumMatching(tokenizer)]) {
    fc.assert(
      fc.property(TEXTS, (text) => assertEquals(each.decode(each.encode(text)), text)),
      { seed: 8, numRuns: 300 },
    );
  }
});

Deno.test("damaged rank files are refused with their line, unknown ones with their number", () => {
  const build = (text: string) => () => tokenizerFromTiktoken(text, { file: "r", kind: KIND });
  assertThrows(build("IQ== 0\nnot base64!\n"), FormatError, "line 2");
  assertThrows(build("IQ== 0\nIg== 0\n"), FormatError, "stands twice");
  assertThrows(build("IQ== 999999999\n"), FormatError, "too high");
  assertThrows(build("IQ== 0\n"), FormatError, "no token for the byte 0");
  assertThrows(build(""), FormatError, "no ranks");
  assertThrows(() => tokenizerFromTiktoken("IQ== 0\n", { file: "r" }), UnsupportedError, "1 ranks");
  assertEquals(isTiktoken(UTF8.encode("IQ== 0\nIg== 1\n")), true);
  assertEquals(isTiktoken(Deno.readFileSync(MODEL)), false);
});

/** The vocabulary of a SentencePiece model as llama2.c's tokenizer.py writes it. */
function writeLlama2c(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { texts, scores } = readSentencePieceModel(bytes, "m");
  const records = texts.map((text, id) => {
    const changed = id === 1 || id === 2 ? `\n${text}\n` : text.replaceAll("\u2581", " ");
    const encoded = UTF8.encode(changed);
    const head = new Uint8Array(8);
    const view = new DataView(head.buffer);
    view.setFloat32(0, scores[id]!, true);
    view.setInt32(4, encoded.length, true);
    return joinBytes([head, encoded]);
  });
  return joinBytes([Uint8Array.of(16, 0, 0, 0), ...records]);
}

Deno.test("llama2.c's tokenizer.bin gives the ids of the model that it was made from", () => {
  const bytes = Deno.readFileSync(MODEL);
  const model = tokenizerFromSentencePiece(bytes, "m");
  const exported = tokenizerFromLlama2c(writeLlama2c(bytes), "tokenizer.bin");
  assertEquals(exported.tokenText(1), "<s>");
  fc.assert(
    fc.property(TEXTS, (text) => {
      assertEquals(exported.encode(text), model.encode(text));
      assertEquals(exported.decode(exported.encode(text)), model.decode(model.encode(text)));
    }),
    { seed: 8, numRuns: 300 },
  );
});

Deno.test("a damaged tokenizer.bin is refused with the token", () => {
  const good = writeLlama2c(Deno.readFileSync(MODEL));
  const build = (bytes: Uint8Array) => () => tokenizerFromLlama2c(bytes, "t");
  assertThrows(build(good.subarray(0, good.length - 1)), FormatError, "token 287");
  assertThrows(build(good.subarray(0, 10)), FormatError, "token 0");
  assertThrows(build(good.subarray(0, 2)), FormatError, "cut short");
  assertThrows(build(good.subarray(0, 4)), FormatError, "0 tokens");
  assertThrows(build(good.slice().fill(255, 8, 12)), FormatError, "length of -1");
});

const BYTES_VOCAB = Object.fromEntries(BYTE_CHARS.map((char, i) => [char, i]));

Deno.test("vocab.json and merges.txt make a byte-level BPE with the roles of its companions", () => {
  const vocab = { ...BYTES_VOCAB, he: 256, "\u0120he": 257, "<|endoftext|>": 258 };
  const merges = "#version: 0.2\nh e\n\u0120 he\n";
  const companions = {
    added: { "<extra>": 259 },
    roles: { eos_token: "<|endoftext|>", bos_token: { content: "<|endoftext|>" } },
  };
  const tokenizer = tokenizerFromVocabMerges(vocab, { merges, file: "v", companions });
  assertEquals(tokenizer.encode("he he"), [256, 257]);
  assertEquals(tokenizer.encode("<extra>he"), [259, 256]);
  assertEquals(tokenizer.encode("he<|endoftext|>", { special: true }), [256, 258]);
  assertEquals([tokenizer.bosId, tokenizer.eosId], [258, 258]);
  fc.assert(
    fc.property(TEXTS, (text) => assertEquals(tokenizer.decode(tokenizer.encode(text)), text)),
    { seed: 8, numRuns: 300 },
  );
  assertThrows(
    () => tokenizerFromVocabMerges(vocab, { merges: "abc\n", file: "v" }),
    FormatError,
    "merges[0]",
  );
});

Deno.test("what goes around and how words are cut follows the companions of vocab.json", () => {
  const vocab = { ...BYTES_VOCAB, "<s>": 256, "</s>": 257, "1": BYTES_VOCAB["1"], "12": 258 };
  const build = (companions: Parameters<typeof tokenizerFromVocabMerges>[1]["companions"]) =>
    tokenizerFromVocabMerges(vocab, { merges: "1 2\n", file: "v", companions });
  const roles = { bos_token: "<s>", eos_token: "</s>" };
  const bert = { ...roles, cls_token: "<s>", sep_token: "</s>" };
  assertEquals(build({ roles }).encode("12"), [258]);
  assertEquals(build({ roles: bert }).encode("12"), [256, 258, 257]);
  assertEquals(build({ roles, config: { add_bos_token: true } }).encode("12"), [256, 258]);
  assertEquals(build({ roles }).warnings.length, 1, "a guess is said");
  const gpt2 = build({ config: { tokenizer_class: "GPT2TokenizerFast" } });
  assertEquals(gpt2.warnings, []);
  const qwen2 = build({ config: { tokenizer_class: "Qwen2Tokenizer" } });
  assertEquals(qwen2.warnings, []);
  const digits = [BYTES_VOCAB["1"], BYTES_VOCAB["2"]];
  assertEquals(qwen2.encode("12"), digits, "single digits are words there");
  const clip = { ...vocab, "a</w>": 259 };
  assertThrows(
    () => tokenizerFromVocabMerges(clip, { merges: "", file: "v" }),
    UnsupportedError,
    "</w>",
  );
  const clipText = tokenizerFromVocabMerges(
    { ...clip, "b</w>": 260, "ab</w>": 261 },
    {
      merges: "a b</w>\n",
      file: "v",
      companions: { roles, config: { tokenizer_class: "CLIPTokenizer" } },
    },
  );
  assertEquals(clipText.warnings, []);
  assertEquals(clipText.encode(" AB  a\tb"), [256, 261, 259, 260, 257], "words end, case goes");
});

const WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing", "Play", "."];

Deno.test("vocab.txt makes a WordPiece tokenizer, with case as the config has it", () => {
  const text = WORDS.join("\n") + "\n";
  assertEquals(tokenizerFromVocabText(text, { file: "v" }).encode("Playing. x"), [
    2,
    5,
    6,
    8,
    1,
    3,
  ]);
  const cased = tokenizerFromVocabText(text, {
    file: "v",
    companions: { config: { do_lower_case: false } },
  });
  assertEquals(cased.encode("Playing"), [2, 7, 6, 3]);
  assertEquals(cased.encode("[MASK]", { special: true }), [2, 4, 3]);
  assertEquals(cased.decode([7, 6, 8]), "Playing.");
  assertThrows(() => tokenizerFromVocabText("a\na\n", { file: "v" }), FormatError, "stands twice");
  assertThrows(() => tokenizerFromVocabText("a\nb\n", { file: "v" }), FormatError, "no [UNK]");
});

Deno.test("maximum matching takes the longest token at each place and skips what none begins with", () => {
  const text = [...WORDS, "playin", "\u4e2d"].join("\n");
  const base = tokenizerFromVocabText(text, { file: "v" });
  const tokenizer = createMaximumMatching(base);
  const shown = (input: string) =>
    tokenizer.encode(input, PLAIN).map((id) => tokenizer.tokenText(id));
  assertEquals(shown("playing."), ["playin", "."]);
  assertEquals(shown("pla\u4e2d?##ing Play"), ["\u4e2d", "##ing", "Play"]);
  assertEquals(shown("[CLS]"), []);
  assertEquals(tokenizer.encode("play"), [2, 5, 3]);
});

Deno.test("maximum matching equals trying every token at every place", () => {
  const words = fc.uniqueArray(
    fc.string({ unit: fc.constantFrom("a", "b", "é"), minLength: 1, maxLength: 4 }),
    { maxLength: 12 },
  );
  const text = fc.string({ unit: fc.constantFrom("a", "b", "é", "x"), maxLength: 12 });
  fc.assert(
    fc.property(words, text, (list, input) => {
      const base = tokenizerFromVocabText([...WORDS.slice(0, 5), ...list].join("\n"), {
        file: "v",
      });
      const wanted: string[] = [];
      for (let at = 0; at < input.length;) {
        const longest = list.filter((word) => input.startsWith(word, at))
          .sort((a, b) => b.length - a.length)[0];
        if (longest !== undefined) wanted.push(longest);
        at += longest?.length ?? 1;
      }
      const tokenizer = createMaximumMatching(base);
      assertEquals(tokenizer.encode(input, PLAIN).map((id) => tokenizer.tokenText(id)), wanted);
    }),
    { seed: 8, numRuns: 300 },
  );
});

Deno.test("pieces whose ids stand in vocab.json are looked up there, languages follow them", async () => {
  const model = Deno.readFileSync(MODEL);
  const pieces = tokenizerFromSentencePiece(model, "m");
  const vocab = {
    "<s>": 0,
    "<pad>": 1,
    "</s>": 2,
    "<unk>": 3,
    "\u2581the": 4,
    "\u2581": 5,
    "n": 6,
  };
  const files = {
    name: "folder",
    readBytes: (name: string) =>
      Promise.resolve(name === "sentencepiece.bpe.model" ? model : undefined),
    readText: (name: string) =>
      Promise.resolve(
        name === "vocab.json"
          ? JSON.stringify(vocab)
          : name === "special_tokens_map.json"
          ? `{"additional_special_tokens": ["__en__", "__fr__"]}`
          : undefined,
      ),
  };
  const tokenizer = (await findTokenizer(files))!;
  assertEquals(pieces.encode("then", PLAIN).map((id) => pieces.tokenText(id)), ["\u2581the", "n"]);
  assertEquals(tokenizer.encode("then"), [4, 6, 2]);
  assertEquals(tokenizer.encode("z", PLAIN), [5, 3], "a piece without an id is unknown");
  assertEquals([tokenizer.idOf("__fr__"), tokenizer.isSpecial(8), tokenizer.vocabSize], [
    8,
    true,
    9,
  ]);
  assertEquals(tokenizer.decode([4, 6]), "then");
  const bare = { ...files, readText: () => Promise.resolve(undefined) };
  await assertRejects(() => findTokenizer(bare), UnsupportedError, "shifted");
});

Deno.test("a folder's tokenizer is found by its files, and told by their bytes", async () => {
  const folder = (files: Record<string, string | Uint8Array>) => ({
    name: "folder",
    readBytes: (name: string) => {
      const file = files[name];
      return Promise.resolve(typeof file === "string" ? UTF8.encode(file) : file);
    },
    readText: (name: string) => Promise.resolve(files[name] as string | undefined),
  });
  const model = Deno.readFileSync(MODEL);
  const found = await findTokenizer(folder({ "tokenizer.model": model }));
  assertEquals(found!.encode("the"), [1, 263]);
  const config = `{"add_bos_token": false}`;
  const bare = await findTokenizer(
    folder({ "tokenizer.model": model, "tokenizer_config.json": config }),
  );
  assertEquals(bare!.encode("the"), [263]);
  const bin = await findTokenizer(folder({ "tokenizer.bin": writeLlama2c(model) }));
  assertEquals(bin!.encode("the"), [1, 263]);
  const words = await findTokenizer(folder({ "vocab.txt": WORDS.join("\n") }));
  assertEquals(words!.encode("play"), [2, 5, 3]);
  const pairs = { "vocab.json": JSON.stringify(BYTES_VOCAB), "merges.txt": "" };
  assertEquals((await findTokenizer(folder(pairs)))!.encode("!"), [33]);
  assertEquals(await findTokenizer(folder({})), undefined);
});
