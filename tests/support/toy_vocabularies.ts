// Small vocabularies for tests of the text side: whole byte alphabets, so that any text can be encoded,
// with a few merges and control tokens.

import type { MetadataValue } from "../../engine/formats/source.ts";
import { BYTE_CHARS } from "../../engine/text/byte_level.ts";
import { type Tokenizer, tokenizerFromGguf } from "../../engine/text/tokenizer.ts";

/** Keys of a GGUF file without their prefix. */
export type ToyKeys = Record<string, MetadataValue>;

/** A tokenizer of these keys. */
export function toyTokenizer(keys: ToyKeys, name = "toy.gguf"): Tokenizer {
  const entries = Object.entries(keys);
  return tokenizerFromGguf(
    new Map(entries.map(([key, value]) => [`tokenizer.ggml.${key}`, value])),
    name,
  );
}

/** Byte-level BPE: 256 bytes, a few merges, four control tokens, one word added by hand. */
export function byteBpeKeys(): ToyKeys {
  const merges = ["h e", "l l", "he ll", "hell o", "Ġ Ġ", "Ġ hello", "a a", "aa aa", "i m", "< |"];
  const merged = merges.map((merge) => merge.replace(" ", ""));
  const control = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<pad>"];
  const tokens = [...BYTE_CHARS, ...merged, ...control, "</think>"];
  return {
    model: "gpt2",
    pre: "gpt-2",
    tokens,
    merges,
    token_type: tokens.map((text) => control.includes(text) ? 3 : text === "</think>" ? 4 : 1),
    bos_token_id: tokens.indexOf("<|im_start|>"),
    eos_token_id: tokens.indexOf("<|im_end|>"),
    add_bos_token: false,
  };
}

/** SentencePiece BPE: byte tokens and pieces with scores. */
export function charBpeKeys(): ToyKeys {
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
  );
  const pieces = ["▁", "h", "e", "l", "o", "a", "he", "ll", "hell", "hello", "▁hello", "lo", "▁h"];
  const more = ["▁▁", "aa", "aaaa", ">▁<", "<", ">", "▁a"];
  const tokens = ["<unk>", "<s>", "</s>", ...bytes, ...pieces, ...more, "<tool>"];
  return {
    model: "llama",
    tokens,
    scores: tokens.map((_, id) => -id),
    token_type: tokens.map((text, id) =>
      id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : text === "<tool>" ? 4 : 1
    ),
    bos_token_id: 1,
    eos_token_id: 2,
    unknown_token_id: 0,
  };
}

/** Unigram, as T5 has it. */
export function unigramKeys(): ToyKeys {
  const tokens = ["<pad>", "</s>", "<unk>", "▁", "a", "b", "ab", "▁a", "abc", "c", "▁abc", "▁b"];
  return {
    model: "t5",
    tokens,
    scores: [0, 0, 0, -3, -2, -2.5, -3, -2.2, -6, -4, -4.5, -3.1],
    token_type: tokens.map((_, id) => id < 2 ? 3 : id === 2 ? 2 : 1),
    eos_token_id: 1,
    unknown_token_id: 2,
    add_eos_token: true,
  };
}

/** WordPiece as GGUF files write it: a mark at the beginning of words. */
export function wordPieceKeys(): ToyKeys {
  const tokens = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "▁un",
    "aff",
    "able",
    "▁hello",
    "▁,",
    "▁world",
  ];
  return {
    model: "bert",
    tokens,
    token_type: tokens.map((_, id) => id === 1 ? 2 : id < 4 ? 3 : 1),
    bos_token_id: 2,
    unknown_token_id: 1,
    seperator_token_id: 3,
    padding_token_id: 0,
  };
}
