// rerank() and classify(): heads that judge a whole sequence by its first row. A reranker has one label, and
// its score says how well a document answers a query; a classifier has a label for each class.

import { type EncoderCallOptions, encodeSequences, type Sequence } from "../decode/encoder_run.ts";
import { UnsupportedError } from "../errors.ts";
import type { Model } from "../decode/model.ts";
import {
  checkTexts,
  type EncoderInput,
  encoderOf,
  orderedScores,
  pairOf,
  tokensOf,
} from "./encoder_text.ts";
import { type LabelScore, labelScores, logistic, topOf } from "./label_scores.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/**
 * Options of {@linkcode rerank} and {@linkcode classify}.
 * @category Encoders
 */
export interface JudgeOptions extends EncoderCallOptions {
  /** How many results, best first. Default all. */
  readonly top?: number;
}

const JUDGE_KEYS: OptionKeys<JudgeOptions> = { top: true, adapters: true, signal: true };

/**
 * A document and how well it answers.
 * @category Encoders
 */
export interface RankedDocument {
  /** Index in the list of documents. */
  readonly index: number;
  /** 0 to 1: the logistic function of `logit`. */
  readonly score: number;
  /** Score as the model gives it. */
  readonly logit: number;
}

/**
 * Orders documents by how well they answer a query, best first; equal ones keep their order.
 *
 * Query and document are read together. Where they are longer than the model takes, the longer one is cut.
 *
 * @param model A cross-encoder: an encoder with a classification head of one label.
 * @throws {UnsupportedError} If the model has no such head, or several labels.
 * @throws {RangeError} On a bad option.
 *
 * @example
 * ```ts ignore
 * import { load, rerank } from "@troodon/troodon";
 *
 * using model = await load("hf:cross-encoder/ms-marco-MiniLM-L6-v2");
 * const [best] = await rerank(model, "How tall is it?", ["It is 5 m tall.", "It is red."]);
 * console.log(best!.index, best!.score);
 * ```
 * @category Encoders
 */
export async function rerank(
  model: Model,
  query: string,
  documents: readonly string[],
  options: JudgeOptions = {},
): Promise<RankedDocument[]> {
  checkOptionKeys(options, { of: "rerank()", known: JUDGE_KEYS });
  checkTexts(documents, "rerank");
  const runtime = encoderOf(model, { use: "rerank documents", head: "scores" });
  const { headWidth } = runtime.encoder;
  if (headWidth !== 1) {
    throw new UnsupportedError(
      `cannot rerank documents: its head has ${headWidth} labels, where a reranker has one`,
      { file: runtime.name, remedy: "Use classify()" },
    );
  }
  const top = topOf(options.top, documents.length);
  const pairs = documents.map((document) => pairOf(runtime, { first: query, second: document }));
  const logits = await judge(model, pairs, options);
  return logits
    .map(([logit], index) => ({ index, score: logistic(logit!), logit: logit! }))
    .sort((a, b) => b.logit - a.logit)
    .slice(0, top);
}

/**
 * Labels of texts, each list best first.
 *
 * @param model An encoder with a classification head.
 * @param texts Texts, pairs of texts, or token ids with special tokens as the model wants them.
 * @throws {UnsupportedError} If the model has no such head. @throws {RangeError} On a bad option.
 *
 * @example
 * ```ts ignore
 * import { classify, load } from "@troodon/troodon";
 *
 * using model = await load("path/of/a/sentiment/model");
 * const [labels] = await classify(model, ["What a lovely day!"]);
 * console.log(labels![0]!.label);
 * ```
 * @category Encoders
 */
export async function classify(
  model: Model,
  texts: readonly (string | readonly number[] | { readonly text: string; readonly pair: string })[],
  options: JudgeOptions = {},
): Promise<LabelScore[][]> {
  checkOptionKeys(options, { of: "classify()", known: JUDGE_KEYS });
  checkTexts(texts, "classify");
  const runtime = encoderOf(model, { use: "classify texts", head: "scores" });
  const { labels, isMultiLabel } = runtime.encoder;
  topOf(options.top, labels.length);
  const sequences = texts.map((one) =>
    typeof one === "object" && "pair" in one
      ? pairOf(runtime, { first: one.text, second: one.pair })
      : { tokens: tokensOf(runtime, one as EncoderInput) }
  );
  const all = await judge(model, sequences, options);
  return all.map((logits) => labelScores(logits, { labels, isMultiLabel, top: options.top }));
}

/** Scores of sequences by their first rows. */
async function judge(
  model: Model,
  sequences: readonly Sequence[],
  options: EncoderCallOptions,
): Promise<Float32Array[]> {
  const runtime = encoderOf(model, { use: "judge texts", head: "scores" });
  const rows: Float32Array[] = [];
  const asked = sequences.map((sequence) => ({ ...sequence, wanted: [0] }));
  await encodeSequences(
    runtime,
    { sequences: asked, read: ({ head }) => rows.push(orderedScores(head.slice())) },
    options,
  );
  return rows;
}
