// The `pre_tokenizer` of tokenizer.json as a function that cuts words further; one row for each type.
// ByteLevel is special: what it marks as bytes is done by the model (byte_bpe.ts), so here it only
// cuts, and it must be the last step.

import { splitBertWords } from "../bert_text.ts";
import { BLANK_MARK } from "../char_bpe.ts";
import {
  childNodes,
  flagField,
  type JsonNode,
  needText,
  refuseFeature,
  refuseField,
  textField,
} from "./fields.ts";
import { readPattern } from "./pattern.ts";
import { compilePattern, PRE_TOKENIZERS, splitWords } from "../pre_tokenizers.ts";

/** Cuts one word; `isFirst` says that the word stands at the very beginning of the text. */
export type WordCutter = (word: string, isFirst: boolean) => readonly string[];

/** A pre-tokenizer and whether its words are bytes. */
export interface JsonPreTokenizer {
  readonly cut: WordCutter;
  readonly isByteLevel: boolean;
}

const PUNCTUATION = /[!-/:-@[-`{-~]|\p{P}/gu;
const WORDS_AND_MARKS =
  /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}\p{White_Space}]+/gu;
const NOT_BLANK = /\P{White_Space}+/gu;

const ROWS: ReadonlyMap<string, (node: JsonNode) => WordCutter> = new Map([
  ["BertPreTokenizer", () => (word: string) => splitBertWords(word)],
  ["ByteLevel", readByteLevel],
  ["Digits", readDigits],
  ["Metaspace", readMetaspace],
  ["Punctuation", readPunctuation],
  ["Sequence", readSequence],
  ["Split", readSplit],
  ["Whitespace", () => (word: string) => word.match(WORDS_AND_MARKS) ?? []],
  ["WhitespaceSplit", () => (word: string) => word.match(NOT_BLANK) ?? []],
]);

type Behavior = (word: string, pattern: RegExp, isInverted?: boolean) => string[];

/** How matches and the text between them become words; inverted, the two change places. */
const BEHAVIORS: ReadonlyMap<string, Behavior> = new Map([
  ["isolated", isolate],
  ["removed", remove],
  ["contiguous", joinMatches],
  ["mergedwithprevious", mergeWithPrevious],
  ["mergedwithnext", mergeWithNext],
]);

/** Reads a pre-tokenizer; nothing leaves the text whole. */
export function readPreTokenizer(node: JsonNode | undefined): JsonPreTokenizer {
  return node === undefined
    ? { cut: (word) => [word], isByteLevel: false }
    : { cut: readCutter(node), isByteLevel: isByteLevel(node) };
}

function isByteLevel(node: JsonNode): boolean {
  const type = needText(node, "type");
  if (type !== "Sequence") return type === "ByteLevel";
  const steps = childNodes(node, "pretokenizers").map(isByteLevel);
  if (steps.lastIndexOf(true, -2) >= 0) refuseFeature(node, "ByteLevel before other steps");
  return steps.at(-1) ?? false;
}

function readCutter(node: JsonNode): WordCutter {
  const type = needText(node, "type");
  const row = ROWS.get(type);
  return row === undefined
    ? refuseFeature(node, `pre-tokenizer ${JSON.stringify(type)}`)
    : row(node);
}

function readSequence(node: JsonNode): WordCutter {
  const steps = childNodes(node, "pretokenizers").map(readCutter);
  return (word, isFirst) => {
    let isStart = isFirst;
    return steps.reduce<readonly string[]>((words, step, at) => {
      // A step that drops what the text begins with leaves nothing that does.
      if (at > 0) isStart &&= beginsAlike(word, words);
      return words.flatMap((part, i) => step(part, isStart && i === 0));
    }, [word]);
  };
}

/** Whether words begin where their text does: nothing was dropped, or not there. */
function beginsAlike(text: string, words: readonly string[]): boolean {
  return text.startsWith(words[0] ?? "") ||
    words.reduce((sum, { length }) => sum + length, 0) >= text.length;
}

function readByteLevel(node: JsonNode): WordCutter {
  const addSpace = flagField(node, "add_prefix_space") ?? true;
  const useRegex = flagField(node, "use_regex") ?? true;
  const patterns = PRE_TOKENIZERS.get("gpt-2")?.patterns.map(compilePattern) ?? [];
  return (word) => {
    const spaced = addSpace && !word.startsWith(" ") ? " " + word : word;
    if (!useRegex) return [spaced];
    const words: string[] = [];
    splitWords(spaced, { patterns, visit: (part) => words.push(part) });
    return words;
  };
}

function readDigits(node: JsonNode): WordCutter {
  const pattern = flagField(node, "individual_digits") ?? false ? /\p{N}/gu : /\p{N}+/gu;
  return (word) => isolate(word, pattern);
}

function readMetaspace(node: JsonNode): WordCutter {
  const mark = textField(node, "replacement") ?? BLANK_MARK;
  const addSpace = flagField(node, "add_prefix_space") ?? true;
  const scheme = textField(node, "prepend_scheme") ?? (addSpace ? "always" : "never");
  if (!["always", "first", "never"].includes(scheme)) {
    refuseField(node, {
      key: "prepend_scheme",
      message: `must be always, first or never, not ${scheme}`,
    });
  }
  const split = flagField(node, "split") ?? true;
  const marks = new RegExp(RegExp.escape(mark), "gu");
  return (word, isFirst) => {
    const marked = word.replaceAll(" ", mark);
    const prepends = scheme === "always" || (scheme === "first" && isFirst);
    const text = prepends && !marked.startsWith(mark) ? mark + marked : marked;
    return split ? mergeWithNext(text, marks) : [text];
  };
}

function readPunctuation(node: JsonNode): WordCutter {
  const behave = readBehavior(node);
  return (word) => behave(word, PUNCTUATION);
}

function readSplit(node: JsonNode): WordCutter {
  const pattern = readPattern(node);
  const behave = readBehavior(node);
  const isInverted = flagField(node, "invert") ?? false;
  return (word) => behave(word, pattern, isInverted);
}

function readBehavior(node: JsonNode): Behavior {
  const name = textField(node, "behavior") ?? "Isolated";
  return BEHAVIORS.get(name.toLowerCase()) ??
    refuseField(node, { key: "behavior", message: `${JSON.stringify(name)} is not known` });
}

function isolate(word: string, pattern: RegExp): string[] {
  const words: string[] = [];
  splitWords(word, { patterns: [pattern], visit: (part) => words.push(part) });
  return words;
}

function remove(word: string, pattern: RegExp, isInverted = false): string[] {
  const kept = isInverted ? word.match(pattern) ?? [] : word.split(pattern);
  return kept.filter((part) => part !== "");
}

interface Span {
  readonly start: number;
  readonly end: number;
  readonly isMatch: boolean;
}

/** Matches and the text between them, in order; an empty match right behind another is none. */
function spansOf(word: string, pattern: RegExp, isInverted: boolean): Span[] {
  const spans: Span[] = [];
  let at = 0;
  for (const { 0: text, index: start } of word.matchAll(pattern)) {
    if (text === "" && start === at && spans.length > 0) continue;
    if (start > at) spans.push({ start: at, end: start, isMatch: isInverted });
    at = start + text.length;
    spans.push({ start, end: at, isMatch: !isInverted });
  }
  if (at < word.length) spans.push({ start: at, end: word.length, isMatch: isInverted });
  return spans;
}

/** Words between the places where spans begin that are not joined to the one before. */
function cutBetween(
  word: string,
  spans: readonly Span[],
  isJoined: (span: Span, before: Span) => boolean,
): string[] {
  const words: string[] = [];
  let start = 0;
  for (let i = 1; i <= spans.length; i++) {
    if (i < spans.length && isJoined(spans[i], spans[i - 1])) continue;
    const end = spans[i - 1].end;
    if (end > start) words.push(word.slice(start, end));
    start = end;
  }
  return words;
}

function joinMatches(word: string, pattern: RegExp, isInverted = false): string[] {
  const spans = spansOf(word, pattern, isInverted);
  return cutBetween(word, spans, (span, before) => span.isMatch === before.isMatch);
}

function mergeWithPrevious(word: string, pattern: RegExp, isInverted = false): string[] {
  const spans = spansOf(word, pattern, isInverted);
  return cutBetween(word, spans, (span, before) => span.isMatch && !before.isMatch);
}

function mergeWithNext(word: string, pattern: RegExp, isInverted = false): string[] {
  const spans = spansOf(word, pattern, isInverted);
  return cutBetween(word, spans, (span, before) => before.isMatch && !span.isMatch);
}
