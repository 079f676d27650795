// Texts for encoders: ids with the model's own special tokens around them, cut where they are too long.
// Texts of control tokens count as such: "[MASK]" must, and an encoder obeys nobody.

import type { EncoderRuntime, Sequence } from "../decode/encoder_run.ts";
import { UnsupportedError } from "../errors.ts";
import { LoadedModel } from "../decode/loaded_model.ts";
import type { Model } from "../decode/model.ts";

/** A text, or its ids with special tokens as the model wants them, to which nothing is added. */
export type EncoderInput = string | readonly number[];

const SUCH_AS = {
  logits: "a model of masked tokens, such as bert-base",
  scores: "a model with a head for whole texts, such as sst2 (labels) or ms-marco-minilm (order)",
} as const;

/**
 * The runtime of an encoder.
 *
 * @param use What for, for the message.
 * @param head Head that it must have.
 * @throws {TypeError} If the model is none of this library.
 * @throws {UnsupportedError} If it is no encoder, or has no such head.
 */
export function encoderOf(
  model: Model,
  { use, head }: { readonly use: string; readonly head?: "logits" | "scores" | undefined },
): EncoderRuntime {
  if (!(model instanceof LoadedModel)) {
    throw new TypeError(`Cannot ${use}: give a model from load()`);
  }
  const { runtime } = model;
  const { encoder, name } = runtime;
  if (!encoder) {
    throw new UnsupportedError(`cannot ${use}: it is no encoder`, {
      file: name,
      remedy: `Load ${head === undefined ? "an encoder such as minilm" : SUCH_AS[head]}`,
    });
  }
  if (head !== undefined && encoder.head !== head) {
    const found = encoder.head === undefined
      ? "no head at all"
      : encoder.head === "logits"
      ? "one for masked tokens"
      : encoder.head === "vectors"
      ? "one for vectors"
      : "one for whole texts";
    throw new UnsupportedError(`cannot ${use}: its files hold ${found}`, {
      file: name,
      remedy: `Load ${SUCH_AS[head]}`,
    });
  }
  return { ...runtime, encoder };
}

/** Ids of one text. */
export function tokensOf(runtime: EncoderRuntime, input: EncoderInput): readonly number[] {
  if (typeof input !== "string") return input;
  const { prefixIds, suffixIds } = runtime.tokenizer();
  const room = roomOf(runtime) - prefixIds.length - suffixIds.length;
  return [...prefixIds, ...plain(runtime, input).slice(0, room), ...suffixIds];
}

/** Ids of two texts as one sequence; where they are too long the longer one is cut. */
export function pairOf(
  runtime: EncoderRuntime,
  { first, second }: { readonly first: string; readonly second: string },
): Sequence {
  const { prefixIds, suffixIds } = runtime.tokenizer();
  const between = Array.from({ length: runtime.encoder.pairSeparators }, () => suffixIds).flat();
  const a = [...plain(runtime, first)], b = [...plain(runtime, second)];
  const room = roomOf(runtime) - prefixIds.length - between.length - suffixIds.length;
  while (a.length + b.length > Math.max(0, room)) (a.length > b.length ? a : b).pop();
  const start = [...prefixIds, ...a, ...between];
  return { tokens: [...start, ...b, ...suffixIds], second: start.length };
}

function plain(runtime: EncoderRuntime, text: string): number[] {
  return runtime.tokenizer().encode(text, { special: true, addSpecial: false });
}

function roomOf({ encoder, batch }: EncoderRuntime): number {
  return Math.min(encoder.maxTokens, batch);
}

const MASK_TOKENS = ["[MASK]", "<mask>"];

/**
 * Id of the token that stands for a hidden word.
 *
 * @throws {UnsupportedError} If the vocabulary has none.
 */
export function maskIdOf(runtime: EncoderRuntime): number {
  const tokenizer = runtime.tokenizer();
  const id = tokenizer.maskId ??
    MASK_TOKENS.map((token) => tokenizer.idOf(token)).find((found) => found !== undefined);
  if (id !== undefined) return id;
  throw new UnsupportedError(`the vocabulary has no mask token (${MASK_TOKENS.join(" or ")})`, {
    file: runtime.name,
  });
}

/**
 * Scores that can be put in order.
 *
 * @throws {RangeError} If one is NaN.
 */
export function orderedScores(scores: Float32Array): Float32Array {
  const at = scores.findIndex(Number.isNaN);
  if (at >= 0) throw new RangeError(`Cannot order scores: that of ${at} is NaN`);
  return scores;
}

/** exp(x - max) / Σ, in place; scores of +Infinity share all probability. */
export function softmaxInPlace(values: Float32Array): Float32Array {
  const largest = values.reduce((a, b) => Math.max(a, b), -Infinity);
  let total = 0;
  for (let i = 0; i < values.length; i++) {
    total += values[i] = values[i] === largest ? 1 : Math.exp(values[i]! - largest);
  }
  for (let i = 0; i < values.length; i++) values[i]! /= total;
  return values;
}

/**
 * Refuses what is no list of texts, one text alone as a rule, and what among them is neither a text nor its ids.
 *
 * @throws {TypeError} Saying what is wanted.
 */
export function checkTexts(texts: unknown, use: string): void {
  if (!Array.isArray(texts)) {
    throw new TypeError(`Cannot ${use}: it takes a list of texts, [text] for one`);
  }
  const isText = (one: unknown) =>
    typeof one === "string" || (typeof one === "object" && one !== null); // ids, a pair of texts
  const odd = texts.findIndex((one) => !isText(one));
  if (odd < 0) return;
  const wanted = "texts, or token ids of each ([[1, 15, 2]] for one text)";
  throw new TypeError(`Cannot ${use}: ${odd} of the list is no text. Give ${wanted}`);
}
