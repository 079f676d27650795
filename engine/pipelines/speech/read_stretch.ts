// The windows of a stretch of sound, one after the other: features, what is asked, the answer, and where to go on.

import type { GenerationStats } from "../../decode/generation.ts";
import { expNegative } from "../../decode/sampling/exp.ts";
import { goodAnswer, type JudgedAnswer, type Listener, type SpeechModel } from "./listener.ts";
import { type LogMel, logMel } from "./log_mel.ts";
import { cutWindow } from "./speech_windows.ts";
import type { TranscriptSegment, TranscriptWord } from "./transcript.ts";
import type { ResolvedTranscribeOptions } from "./transcribe_options.ts";
import { wordsOf } from "./words.ts";

/** What stretches of one sound have in common. */
export interface ReadState {
  /** The language, once somebody has begun to listen for it. */
  language: Promise<string | undefined> | undefined;
  /** Seed of the first answer, and so of all. */
  seed: number | undefined;
  /** Told of the figures of each window, and of the seconds that are read with it. */
  onWindow(stats: GenerationStats, seconds: number): void;
}

/** A stretch, and who reads it how. */
export interface ReadInput {
  readonly listener: Listener;
  /** At the model's rate. */
  readonly samples: Float32Array;
  /** Seconds at which the stretch begins. */
  readonly offset: number;
  readonly options: ResolvedTranscribeOptions;
  readonly state: ReadState;
  readonly signal: AbortSignal;
}

/** Segments of a stretch. */
export async function* readStretch(
  speech: SpeechModel,
  { listener, samples, offset, options, state, signal }: ReadInput,
): AsyncGenerator<TranscriptSegment> {
  const { vocabulary, sound: { features, framesPerPosition }, model: { tokenizer } } = speech;
  const { rate, hop, frames: window } = features;
  const whole = await logMel(padded(samples, window * hop), { ...features, signal });
  const frames = Math.max(1, Math.min(whole.frames, Math.floor(samples.length / hop)));
  const secondsAt = (frame: number) => offset + frame * hop / rate;
  const said = options.prompt === undefined
    ? []
    : tokenizer.encode(` ${options.prompt.trim()}`, { addSpecial: false });
  let isSure = true;
  for (let seek = 0; seek < frames;) {
    const length = Math.min(window, frames - seek);
    await listener.hear(windowOf(whole, seek, window), signal);
    const before = speech.vocabulary.previous === undefined || !isSure || said.length === 0
      ? []
      : [speech.vocabulary.previous, ...said.slice(-mostPrevious(speech))];
    const begin = [...before, vocabulary.start];
    state.language ??= detectLanguage(speech, listener, signal);
    const language = await state.language;
    const noSpeech = options.maxNoSpeech < 1
      ? probabilityOf(vocabulary.noSpeech, await listener.logitsAfter(begin, signal))
      : 0;
    const asked = vocabulary.ask({
      ...{ language, task: options.task, hasTimestamps: options.timestamps },
    });
    const prompt = [...before, ...asked];
    const answer = await goodAnswer(listener, {
      prompt,
      ...{ noSpeech, vocabularySize: tokenizer.vocabSize },
      wish: {
        ...{ hasTimestamps: options.timestamps, maxTokens: options.maxTokens },
        ...{ seed: state.seed, signal },
      },
    }, options);
    state.seed ??= answer.seed;
    const steps = Math.floor(length / framesPerPosition);
    const content = withoutEnd(answer.ids, vocabulary.ends);
    const { parts, taken } = answer.isSilent ? { parts: [], taken: steps } : cutWindow(content, {
      ...{ firstTimestamp: vocabulary.firstTimestamp, length: steps },
    });
    const times = options.words && !answer.isSilent
      ? await listener.times(answer.ids, { prompt, length: steps, signal })
      : undefined;
    // A token begins where the one before it ends, the first one with the window.
    const bounds = times && [0, ...times.slice(0, content.length)];
    const secondsOf = (position: number) => secondsAt(seek + position * framesPerPosition);
    const isText = (id: number) => id < vocabulary.firstTimestamp;
    let next = 0;
    for (const { ids, start, end } of parts) {
      const first = next;
      next += ids.length;
      if (options.conditionOnPrevious) said.push(...withoutSecond(ids, vocabulary.firstTimestamp));
      const text = tokenizer.decode(ids.filter(isText), { skipSpecial: true });
      if (text.trim() === "") continue;
      yield segmentOf(answer, {
        ...{ ids, text, start: secondsOf(start), end: secondsOf(end) },
        words: bounds && timedWords(ids, {
          ...{ tokenizer, language, isText },
          secondsAt: (token) => secondsOf(bounds[first + token]!),
        }),
      });
    }
    // What was guessed at would be taken for what was said.
    isSure = answer.temperature < 0.5;
    seek += taken < steps ? taken * framesPerPosition : length;
    state.onWindow(answer.stats, secondsAt(Math.min(seek, frames)));
  }
}

/** The sound, followed by silence up to a window; a longer one as it is. */
function padded(samples: Float32Array, length: number): Float32Array {
  if (samples.length >= length) return samples;
  const filled = new Float32Array(length);
  filled.set(samples);
  return filled;
}

/** Frames from `seek` on: f32[mels, window]; behind the last they are 0. */
function windowOf({ values, mels, frames }: LogMel, seek: number, window: number): Float32Array {
  const features = new Float32Array(mels * window);
  const count = Math.min(window, frames - seek);
  for (let mel = 0; mel < mels; mel++) {
    const from = mel * frames + seek;
    features.set(values.subarray(from, from + count), mel * window);
  }
  return features;
}

/** Half of the context is for the answer. */
function mostPrevious({ model }: SpeechModel): number {
  return Math.floor(model.runtime.capacity / 2) - 1;
}

async function detectLanguage(
  { vocabulary: { languages, start } }: SpeechModel,
  listener: Listener,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (languages.size === 0) return undefined;
  const logits = await listener.logitsAfter([start], signal);
  const [best] = [...languages].reduce((a, b) => logits[b[1]]! > logits[a[1]]! ? b : a);
  return best;
}

function probabilityOf(id: number, logits: Float32Array): number {
  const max = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  return expNegative(logits[id]! - max) / logits.reduce((sum, x) => sum + expNegative(x - max), 0);
}

function withoutEnd(ids: readonly number[], ends: ReadonlySet<number>): readonly number[] {
  return ends.has(ids.at(-1) ?? -1) ? ids.slice(0, -1) : ids;
}

/** Where a stretch ends with a pair of timestamps, its second one belongs to the next. */
function withoutSecond(ids: readonly number[], firstTimestamp: number): readonly number[] {
  const isPair = ids.length > 2 && ids.at(-2)! >= firstTimestamp;
  return isPair ? ids.slice(0, -1) : ids;
}

function segmentOf(
  { temperature, logProbability, compression }: JudgedAnswer,
  { ids, words, ...facts }: Pick<TranscriptSegment, "text" | "start" | "end"> & {
    readonly ids: readonly number[];
    readonly words: readonly TranscriptWord[] | undefined;
  },
): TranscriptSegment {
  const tokens = ids.map((id) => ({ id }));
  return { ...facts, ...words && { words }, tokens, temperature, logProbability, compression };
}

/** The words of a stretch; timestamps among its tokens are none. */
function timedWords(
  ids: readonly number[],
  { isText, secondsAt, ...facts }: Parameters<typeof wordsOf>[1] & {
    isText(id: number): boolean;
    /** When a token begins. */
    secondsAt(token: number): number;
  },
): TranscriptWord[] {
  const places = [...ids.keys()].filter((at) => isText(ids[at]!));
  return wordsOf(places.map((at) => ids[at]!), facts).map(({ text, from, last }) => ({
    ...{ text, start: secondsAt(places[from]!), end: secondsAt(places[last]! + 1) },
  }));
}
