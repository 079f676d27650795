// The rules of transformers' WhisperTimeStampLogitsProcessor, case by case: ids 0 to 3 are text, 4 ends, 5 says that there
// are no timestamps, 6 to 10 are timestamps.

import { assert, assertEquals } from "@std/assert";
import type { SpeechTokens } from "../../formats/media/speech_config.ts";
import { speechRules } from "./speech_rules.ts";
import type { SpeechVocabulary } from "./speech_tokens.ts";

const CONFIG: SpeechTokens = {
  languages: new Map(),
  tasks: new Map(),
  isMultilingual: false,
  noTimestamps: 5,
  previous: undefined,
  lastFirstTimestamp: 2,
  suppressed: [3],
  suppressedFirst: [4],
};
const VOCABULARY: SpeechVocabulary = {
  ...{ start: 0, ends: new Set([4]), languages: new Map(), previous: undefined, noSpeech: 4 },
  ...{ noTimestamps: 5, firstTimestamp: 6, config: CONFIG, ask: () => [], codeOf: () => "en" },
};

/** Ids that may be taken behind some tokens. */
function allowed(said: readonly number[], likely: Readonly<Record<number, number>> = {}): number[] {
  const { step } = speechRules(VOCABULARY, { hasTimestamps: true, vocabulary: 11 });
  // Text is likelier than all timestamps, unless a case says otherwise.
  const logits = Float32Array.from({ length: 11 }, (_, id) => likely[id] ?? (id < 6 ? 9 : 0));
  const ids = Int32Array.from(logits.keys());
  step({ ids, logits, history: [1, ...said], promptLength: 1 });
  return [...ids].filter((id) => logits[id]! > -Infinity);
}

Deno.test("an answer begins with one of the first timestamps", () => {
  assertEquals(allowed([]), [6, 7, 8]);
});

Deno.test("text follows the first timestamp, and what is suppressed never comes", () => {
  assertEquals(allowed([6]), [0, 1, 2, 4]);
});

Deno.test("behind text comes text, the end, or a later timestamp", () => {
  assertEquals(allowed([7, 1]), [0, 1, 2, 4, 8, 9, 10]);
});

Deno.test("a timestamp behind text is followed by one as late, or by the end", () => {
  assertEquals(allowed([6, 1, 8]), [4, 8, 9, 10]);
});

Deno.test("a pair of timestamps is followed by text", () => {
  assertEquals(allowed([6, 1, 8, 8]), [0, 1, 2, 4]);
});

Deno.test("where timestamps together are likelier than any text, one of them comes", () => {
  assertEquals(allowed([6, 1], { 9: 8.9, 10: 8.9 }), [7, 8, 9, 10]);
  assertEquals(allowed([6, 1], { 9: 8.2, 10: 8.2 }), [0, 1, 2, 4, 7, 8, 9, 10]);
});

Deno.test("without timestamps only suppressed tokens are left out", () => {
  const { step } = speechRules(VOCABULARY, { hasTimestamps: false, vocabulary: 11 });
  const logits = new Float32Array(11), ids = Int32Array.from(logits.keys());
  step({ ids, logits, history: [1], promptLength: 1 });
  assertEquals([...ids].filter((id) => logits[id] === -Infinity), [3, 4]);
});

Deno.test("the probability of an answer is that among what the rules left", () => {
  const { step, sumOf } = speechRules(VOCABULARY, { hasTimestamps: true, vocabulary: 11 });
  const said: number[] = [];
  for (const taken of [7, 1, 4]) {
    const logits = new Float32Array(11).fill(9, 0, 6);
    step({ ids: Int32Array.from(logits.keys()), logits, history: [1, ...said], promptLength: 1 });
    said.push(taken);
  }
  // One of three timestamps, one of four texts, one of four texts and three unlikely timestamps.
  const expected = -Math.log(3) - Math.log(4) - Math.log(4 + 3 * Math.exp(-9));
  assert(Math.abs(sumOf(said) - expected) < 1e-6, `${sumOf(said)} ${expected}`);
});
