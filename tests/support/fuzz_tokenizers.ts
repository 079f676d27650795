// What must hold for any bytes given to the reader of SentencePiece models: it builds a tokenizer that
// encodes texts to ids of its own vocabulary, or throws one of our errors.

import { FormatError, UnsupportedError } from "../../engine/errors.ts";
import { tokenizerFromSentencePiece } from "../../engine/text/sentencepiece.ts";
import type { Tokenizer } from "../../engine/text/tokenizer_types.ts";
import { writeSentencePiece } from "./write_sentencepiece.ts";

const TEXTS = ["", " a  b ", "abab <s> \u2581c", "é\u4e2d\u{1f600}\n", "ab".repeat(500)];

/**
 * Builds a tokenizer from `bytes` and uses it.
 *
 * @throws {Error} If anything but an own error is thrown, or an id is outside the vocabulary.
 */
export function fuzzSentencePiece(bytes: Uint8Array): void {
  try {
    const tokenizer = tokenizerFromSentencePiece(bytes, "fuzz");
    for (const text of TEXTS) checkText(tokenizer, text);
  } catch (error) {
    if (!(error instanceof FormatError || error instanceof UnsupportedError)) throw error;
    if (error.message.includes("\n")) throw new Error(`Message of several lines: ${error.message}`);
  }
}

function checkText(tokenizer: Tokenizer, text: string): void {
  const ids = tokenizer.encode(text);
  const odd = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= tokenizer.vocabSize);
  if (odd !== undefined) throw new Error(`Id ${odd} of ${tokenizer.vocabSize}`);
  tokenizer.decode(ids);
}

/** Good files to mutate. */
export function sentencePieceSeeds(): Uint8Array[] {
  const pieces = [
    { text: "<unk>", kind: 2 },
    { text: "<s>", kind: 3 },
    { text: "</s>", kind: 3 },
    { text: "<0x0A>", kind: 6 },
    { text: "c", kind: 4 },
    { text: "ab", score: -1 },
    { text: "\u2581a", score: -2 },
    ..."ab\u2581".split("").map((text, i) => ({ text, score: -3 - i })),
  ];
  return [1, 2].map((type) =>
    writeSentencePiece(pieces, { trainer: { 3: type, 35: 1 }, normalizer: { 3: 1, 4: 0, 5: 1 } })
  );
}
