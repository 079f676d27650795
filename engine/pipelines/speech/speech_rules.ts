// What a speech recogniser may write next, as a step of the sampler: some tokens never, some not at first, and
// timestamps in pairs that do not go back (transformers' WhisperTimeStampLogitsProcessor). Where all timestamps
// together are likelier than any text, a timestamp comes. The step also notes how likely what was taken is by what it
// left, since that tells a good answer from a bad one.

import type { SamplingFunction } from "../../decode/sampling/own_step.ts";
import { expNegative } from "../../decode/sampling/exp.ts";
import type { SpeechVocabulary } from "./speech_tokens.ts";

/** The rules of one answer. */
export interface SpeechRules {
  /** The first step of a chain: it is given all tokens in the order of their ids. */
  readonly step: SamplingFunction;
  /** Σ ln p of the tokens that were taken. */
  sumOf(ids: readonly number[]): number;
}

/** Rules for an answer that begins now. */
export function speechRules(
  { firstTimestamp, noTimestamps, ends, config }: SpeechVocabulary,
  { hasTimestamps, vocabulary }: { readonly hasTimestamps: boolean; readonly vocabulary: number },
): SpeechRules {
  const { suppressed, suppressedFirst, lastFirstTimestamp } = config;
  const end = Math.min(...ends);
  const left = new Float32Array(vocabulary);
  let mass = 0, max = 0, sum = 0, counted = 0;

  /** Timestamps come in pairs, but for one in front of the end. */
  function pairTimestamps(
    logits: Float32Array,
    history: ArrayLike<number>,
    promptLength: number,
  ): void {
    logits[noTimestamps] = -Infinity;
    const length = history.length - promptLength;
    const isTime = (back: number) => history[history.length - back]! >= firstTimestamp;
    const wasTime = length >= 1 && isTime(1), wasBefore = length < 2 || isTime(2);
    if (wasTime && wasBefore) logits.fill(-Infinity, firstTimestamp);
    else if (wasTime) logits.fill(-Infinity, 0, end);
    let at = history.length - 1;
    while (at >= promptLength && history[at]! < firstTimestamp) at--;
    if (at >= promptLength) {
      // The second of a pair may be equal, any other one is later.
      const least = history[at]! + (wasTime && !wasBefore ? 0 : 1);
      logits.fill(-Infinity, firstTimestamp, least);
    }
    if (length > 0) return;
    logits.fill(-Infinity, 0, firstTimestamp);
    if (lastFirstTimestamp === undefined) return;
    logits.fill(-Infinity, firstTimestamp + lastFirstTimestamp + 1);
  }

  function preferTimestamps(logits: Float32Array): void {
    let text = -Infinity, time = -Infinity;
    for (let id = 0; id < firstTimestamp; id++) if (logits[id]! > text) text = logits[id]!;
    for (let id = firstTimestamp; id < logits.length; id++) {
      if (logits[id]! > time) time = logits[id]!;
    }
    if (time === -Infinity) return;
    let mass = 0;
    for (let id = firstTimestamp; id < logits.length; id++) mass += expNegative(logits[id]! - time);
    if (time + Math.log(mass) > text) logits.fill(-Infinity, 0, firstTimestamp);
  }

  function count(id: number): void {
    if (counted > 0) sum += left[id]! - max - Math.log(mass);
  }

  function note(logits: Float32Array): void {
    left.set(logits);
    max = -Infinity;
    for (let id = 0; id < logits.length; id++) if (logits[id]! > max) max = logits[id]!;
    mass = 0;
    for (let id = 0; id < logits.length; id++) mass += expNegative(logits[id]! - max);
    counted++;
  }

  function speech({ logits, history, promptLength }: Parameters<SamplingFunction>[0]): void {
    const { length } = history;
    if (length > promptLength) count(history[length - 1]!);
    else for (const id of suppressedFirst) logits[id] = -Infinity;
    for (const id of suppressed) logits[id] = -Infinity;
    if (hasTimestamps) {
      pairTimestamps(logits, history, promptLength);
      preferTimestamps(logits);
    }
    note(logits);
  }

  return {
    step: speech,
    sumOf(ids) {
      // The last token is in no history.
      if (counted === ids.length && counted > 0) {
        count(ids.at(-1)!);
        counted = 0;
      }
      return sum;
    },
  };
}
