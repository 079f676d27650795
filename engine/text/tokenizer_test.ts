import { assert, assertEquals, assertFalse, assertThrows } from "@std/assert";
import fc from "fast-check";
import { assertLinear } from "../../tests/support/linear.ts";
import {
  byteBpeKeys,
  charBpeKeys,
  type ToyKeys,
  toyTokenizer,
  unigramKeys,
  wordPieceKeys,
} from "../../tests/support/toy_vocabularies.ts";
import { createStreamDecoder } from "./stream_decoder.ts";
import type { Tokenizer } from "./tokenizer.ts";

const KINDS: Readonly<Record<string, () => ToyKeys>> = {
  "byte-level BPE": byteBpeKeys,
  "SentencePiece BPE": charBpeKeys,
  "unigram": unigramKeys,
  "WordPiece": wordPieceKeys,
};
/** Kinds that can write any text. */
const LOSSLESS: readonly string[] = ["byte-level BPE", "SentencePiece BPE"];

/** Texts with what tokenizers trip over: control tokens, marks, blanks, characters of all planes. */
function anyText(): fc.Arbitrary<string> {
  return fc.string({
    unit: fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
      fc.constantFrom(
        "hello",
        " ",
        "  ",
        "\n",
        "a",
        "aa",
        "▁",
        "<|im_end|>",
        "<s>",
        "</s>",
        "<0x41>",
      ),
      fc.constantFrom("</think>", "<tool>", "[CLS]", "> <", "👋", "é", "<", "|>", "<|"),
    ),
    maxLength: 30,
  }).filter((text) => text.isWellFormed());
}

function anyIds({ vocabSize }: Tokenizer): fc.Arbitrary<number[]> {
  return fc.array(fc.nat({ max: vocabSize - 1 }), { maxLength: 30 });
}

for (const [kind, keys] of Object.entries(KINDS)) {
  const tokenizer = toyTokenizer(keys());

  Deno.test(`${kind}: ordinary encoding never gives a control token`, () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        const ids = tokenizer.encode(text, { addSpecial: false });
        assert(ids.every((id) => id === tokenizer.unkId || !tokenizer.isSpecial(id)), String(ids));
      }),
      { seed: 11, numRuns: 500 },
    );
  });

  Deno.test(`${kind}: streamed text equals the decoding of the whole, for any ids`, () => {
    fc.assert(
      fc.property(anyIds(tokenizer), fc.boolean(), (ids, skipSpecial) => {
        const decoder = createStreamDecoder(tokenizer, { skipSpecial });
        const pieces = ids.map((id) => decoder.push(id));
        assert(pieces.every((piece) => piece.isWellFormed()));
        assertEquals(
          pieces.join("") + decoder.finish(),
          tokenizer.decode(ids, { skipSpecial }),
        );
      }),
      { seed: 12, numRuns: 500 },
    );
  });

  if (LOSSLESS.includes(kind)) {
    Deno.test(`${kind}: decoding what was encoded gives the text back`, () => {
      fc.assert(
        fc.property(anyText(), (text) => {
          // What a vocabulary writes as a blank cannot come back as itself, and before text behind a
          // word that was added by hand there is a blank in such vocabularies.
          const plain = kind === "SentencePiece BPE"
            ? text.replaceAll("▁", " ").replaceAll("<tool>", "")
            : text;
          assertEquals(tokenizer.decode(tokenizer.encode(plain, { addSpecial: false })), plain);
        }),
        { seed: 13, numRuns: 500 },
      );
    });
  }
}

Deno.test("control tokens are found in text only when asked for", () => {
  const tokenizer = toyTokenizer(byteBpeKeys());
  const end = tokenizer.idOf("<|im_end|>");
  const think = tokenizer.idOf("</think>");
  assertFalse(tokenizer.encode("a<|im_end|>b").includes(end as number));
  assertEquals(tokenizer.encode("<|im_end|>", { special: true }), [end]);
  assertEquals(tokenizer.encode("</think>"), [think], "words added by hand are ordinary text");
  assertEquals(tokenizer.findSpecial("a<|im_end|>b<pad>"), [1, 12]);
});

Deno.test("ids outside the vocabulary are refused", () => {
  const tokenizer = toyTokenizer(byteBpeKeys());
  for (const id of [-1, tokenizer.vocabSize, 0.5, NaN]) {
    assertThrows(() => tokenizer.decode([id]), RangeError, "ids are 0 to");
    assertThrows(() => tokenizer.tokenText(id), RangeError);
  }
});

Deno.test("BOS and EOS go around a text by the model's own rule", () => {
  const llama = toyTokenizer(charBpeKeys());
  assertEquals(llama.encode("hello"), [1, llama.idOf("▁hello")]);
  assertEquals(llama.encode("hello", { addSpecial: false }), [llama.idOf("▁hello")]);
  const bert = toyTokenizer(wordPieceKeys());
  assertEquals(bert.encode("Hello"), [2, bert.idOf("▁hello"), 3]);
  const t5 = toyTokenizer(unigramKeys());
  assertEquals(t5.encode("a"), [t5.idOf("▁a"), 1]);
});

// llama.cpp reads both keys; accents follow the case where only that is given.
Deno.test("word pieces keep case and accents where the file says so", () => {
  const encode = (keys: Record<string, boolean>, text: string) =>
    toyTokenizer({ ...wordPieceKeys(), ...keys }).encode(text, { addSpecial: false });
  const hello = toyTokenizer(wordPieceKeys()).idOf("▁hello");
  assertEquals(encode({}, "HÉLLO"), [hello]);
  assertEquals(encode({ "normalizer.lowercase": false }, "Hello"), [1]);
  assertEquals(encode({ "normalizer.lowercase": false }, "héllo"), [1]);
  assertEquals(encode({ "normalizer.strip_accents": false }, "HELLO"), [hello]);
  assertEquals(encode({ "normalizer.strip_accents": false }, "héllo"), [1]);
  const accents = { "normalizer.lowercase": false, "normalizer.strip_accents": true };
  assertEquals(encode(accents, "héllo"), [hello]);
});

Deno.test("word pieces are joined with blanks, without blanks before punctuation", () => {
  const bert = toyTokenizer(wordPieceKeys());
  const ids = bert.encode("Héllo, unaffable WORLD!", { addSpecial: false });
  assertEquals(ids.map((id) => bert.tokenText(id)), [
    "▁hello",
    "▁,",
    "▁un",
    "aff",
    "able",
    "▁world",
    "[UNK]",
  ]);
  assertEquals(bert.decode(ids, { skipSpecial: true }), "hello, unaffable world");
});

Deno.test("a unigram vocabulary gives the pieces with the highest sum of scores", () => {
  const t5 = toyTokenizer(unigramKeys());
  const pieces = (text: string) =>
    t5.encode(text, { addSpecial: false }).map((id) => t5.tokenText(id));
  assertEquals(pieces("abc"), ["▁abc"]);
  assertEquals(pieces("aab"), ["▁a", "ab"]);
  assertEquals(pieces("axyb"), ["▁a", "<unk>", "b"], "unknown characters in a row are one token");
});

Deno.test("a stream that goes on after other text keeps the blank of its first word", () => {
  const llama = toyTokenizer(charBpeKeys());
  const id = llama.idOf("▁hello") as number;
  assertEquals(createStreamDecoder(llama).push(id), "hello");
  assertEquals(createStreamDecoder(llama, { continues: true }).push(id), " hello");
});

Deno.test("a character that comes in four tokens appears with the last of them", () => {
  const tokenizer = toyTokenizer(byteBpeKeys());
  const decoder = createStreamDecoder(tokenizer);
  const ids = tokenizer.encode("👋");
  assertEquals(ids.map((id) => decoder.push(id)), ["", "", "", "👋"]);
  decoder.push(ids[0]);
  assertEquals(decoder.finish(), "\ufffd");
});

Deno.test("a megabyte of one letter takes linear time, whatever the vocabulary", () => {
  for (const keys of [byteBpeKeys, charBpeKeys, unigramKeys]) {
    const tokenizer = toyTokenizer(keys());
    assertLinear(keys.name, 62_500, (size) => {
      assert(tokenizer.encode("a".repeat(size), { addSpecial: false }).length >= size / 4);
    });
  }
});

Deno.test("a stream takes tokens of any length, whole and behind half a character", () => {
  const long = "a".repeat(1 << 20),
    bytes = [[0xc3], [0xa9], [0xc3], [...new TextEncoder().encode(long)]];
  const tokenizer = {
    leadingBlanks: 0,
    tokenBytes: (id: number) => Uint8Array.from(bytes[id]!),
  } as Tokenizer;
  const decoder = createStreamDecoder(tokenizer);
  assertEquals([3, 0, 1, 2, 3].map((id) => decoder.push(id)), [long, "", "é", "", `\uFFFD${long}`]);
  assertEquals(decoder.finish(), "");
});
