// How far tokenizers reach: text of every kind, and one word without an end, take linear time whatever the algorithm,
// and a word of two megabytes is read and comes back. `deno task bench` tells how fast.

import { assert, assertEquals } from "@std/assert";
import { BYTE_CHARS } from "../engine/text/byte_level.ts";
import { createMaximumMatching } from "../engine/text/maximum_matching.ts";
import { tokenizerFromSentencePiece } from "../engine/text/sentencepiece.ts";
import { tokenizerFromTiktoken } from "../engine/text/tiktoken.ts";
import type { Tokenizer } from "../engine/text/tokenizer.ts";
import { modelTokenizer } from "../tools/fixtures/model_tokenizer.ts";
import { fixturePath } from "./support/fixtures.ts";
import { assertLinear } from "./support/linear.ts";
import { mixedText } from "./support/mixed_text.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";
import {
  byteBpeKeys,
  charBpeKeys,
  toyTokenizer,
  unigramKeys,
  wordPieceKeys,
} from "./support/toy_vocabularies.ts";
import { readVocabulary, vocabularyNeed } from "./support/vocabularies.ts";
import { random } from "./support/weights.ts";

const WORD_BYTES = 2_000_000;
const MIXED = mixedText(400_000, 7);

function checkMixed(name: string, tokenizer: Tokenizer): void {
  assertLinear(name, MIXED.length / 16, (size, from) => {
    const ids = tokenizer.encode(MIXED.slice(from, from + size));
    // Some two bytes a token: the text has words that no vocabulary knows.
    assert(ids.length > size / 10 && ids.length < size, `${ids.length} tokens of ${size} letters`);
  });
}

for (const name of ["gpt2", "cl100k", "llama3", "llama2", "clip"]) {
  testWith([vocabularyNeed(name)], `${name} reads mixed text in linear time`, () => {
    checkMixed(name, readVocabulary(name));
  });
}

for (const name of ["smollm2-135m", "gemma3-270m", "minilm"]) {
  testWith([modelNeed(name)], `${name} reads mixed text in linear time`, async () => {
    checkMixed(name, (await modelTokenizer(name))!);
  });
}

/** One word of letters a to c, so that merges have something to do. */
function longWord(): string {
  const next = random(11);
  const bytes = Uint8Array.from({ length: WORD_BYTES }, () => 97 + Math.floor(3 * next()));
  return new TextDecoder().decode(bytes);
}

function sentencePiece(name: string): Tokenizer {
  const path = fixturePath(`tokenizers/sentencepiece/${name}.model`);
  return tokenizerFromSentencePiece(Deno.readFileSync(path), name);
}

/** Bytes, and the nine pairs of the letters of the long word. */
function tiktoken(): Tokenizer {
  const bytes = BYTE_CHARS.map((_, byte) => String.fromCharCode(byte));
  const pairs = [..."abc"].flatMap((a) => [..."abc"].map((b) => a + b));
  const lines = [...bytes, ...pairs].map((token, rank) => `${btoa(token)} ${rank}\n`);
  return tokenizerFromTiktoken(lines.join(""), {
    file: "toy.tiktoken",
    kind: {
      patterns: [String.raw`\p{L}+|\P{L}+`],
      control: {},
    },
  });
}

const ALGORITHMS: Readonly<Record<string, () => Tokenizer>> = {
  "byte-level BPE": () => toyTokenizer(byteBpeKeys()),
  "BPE over characters": () => toyTokenizer(charBpeKeys()),
  "unigram": () => toyTokenizer(unigramKeys()),
  "WordPiece": () => toyTokenizer(wordPieceKeys()),
  "maximum matching": () => createMaximumMatching(toyTokenizer(charBpeKeys())),
  "SentencePiece BPE": () => sentencePiece("bpe"),
  "SentencePiece unigram": () => sentencePiece("unigram"),
  "tiktoken": tiktoken,
};

for (const [name, make] of Object.entries(ALGORITHMS)) {
  Deno.test(`a word of two megabytes ends in ${name}, and shorter ones take linear time`, () => {
    const tokenizer = make();
    const word = longWord();
    assertLinear(name, 20_000, (size) => void tokenizer.encode(word.slice(0, size)));
    const ids = tokenizer.encode(word);
    assert(ids.length > 0);
    if (!["unigram", "WordPiece", "SentencePiece unigram"].includes(name)) {
      assertEquals(tokenizer.decode(ids, { skipSpecial: true }).trimStart(), word);
    }
  });
}

testWith(
  [vocabularyNeed("clip")],
  "patterns of tokenizer.json take a word of two megabytes",
  () => {
    const tokenizer = readVocabulary("clip");
    assertEquals(tokenizer.encode("a".repeat(WORD_BYTES)).length, WORD_BYTES / 8 + 3);
  },
);
