// What tests of grammars share: a tokenizer of a few tokens made up by the test, and readings of whole texts byte by
// byte, apart from any vocabulary.

import type { Constraint } from "../../engine/text/grammar/constraint.ts";
import type { Threads } from "../../engine/text/grammar/frames.ts";
import type { Grammar } from "../../engine/text/grammar/grammar.ts";
import { Reader } from "../../engine/text/grammar/reader.ts";
import type { Tokenizer } from "../../engine/text/tokenizer_types.ts";

/** The end of the text, as {@linkcode allowed} writes it. */
export const END = "<end>";

/** Whether a grammar allows a whole text. */
export function reads(grammar: Grammar, text: string): boolean {
  return readAlong(grammar, text).canEnd;
}

/** Whether a grammar allows a text that goes on. */
export function begins(grammar: Grammar, text: string): boolean {
  return readAlong(grammar, text).list.length > 0;
}

function readAlong(grammar: Grammar, text: string): Threads {
  const reader = new Reader(grammar.root);
  let threads = reader.start();
  for (const byte of new TextEncoder().encode(text)) {
    reader.push(byte);
    threads = reader.step(threads, byte);
  }
  return threads;
}

/** A tokenizer of some tokens, each character one byte; the end of the text stands behind them. */
export function tokenizerOf(texts: readonly string[]): Tokenizer {
  const bytes = [...texts, ""].map((text) => Uint8Array.from(text, (one) => one.charCodeAt(0)));
  const eosId = texts.length;
  return {
    algorithm: "bpe",
    vocabSize: texts.length + 1,
    eosId,
    endOfGenerationIds: new Set([eosId]),
    addBos: false,
    addEos: false,
    prefixIds: [],
    suffixIds: [],
    leadingBlanks: 0,
    warnings: [],
    encode: () => [],
    decode: () => "",
    tokenBytes: (id) => bytes[id]!,
    tokenText: (id) => texts[id] ?? END,
    isSpecial: (id) => id === eosId,
    idOf: (token) => texts.indexOf(token),
    findSpecial: () => [],
  };
}

/** Texts of the tokens that may follow. */
export function allowed(constraint: Constraint, tokenizer: Tokenizer): string[] {
  const mask = constraint.mask();
  const ids = Array.from({ length: tokenizer.vocabSize }, (_, id) => id);
  return ids.filter((id) => mask[id >> 5]! >> (id & 31) & 1).map((id) => tokenizer.tokenText(id));
}
