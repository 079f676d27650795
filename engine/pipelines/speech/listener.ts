// A session of a model that listens, and what it says to a window of sound: the answer to one prompt, and by the
// temperatures of Whisper's fallback the first one that neither repeats itself nor is unlikely. An answer that was taken
// runs once more, many tokens at a time, where its tokens are to be timed.

import { startGeneration } from "../../decode/generate.ts";
import type { GenerationStats } from "../../decode/generation.ts";
import type { LoadedModel } from "../../decode/loaded_model.ts";
import { runSteps } from "../../pause.ts";
import type { SpeechConfig } from "../../formats/media/speech_config.ts";
import { UnsupportedError } from "../../errors.ts";
import { speechRules } from "./speech_rules.ts";
import { copyHeadRows, createHeadRows } from "./sound_attention.ts";
import { type SpeechVocabulary, speechVocabulary } from "./speech_tokens.ts";
import { tokenTimes } from "./token_times.ts";
import type { ResolvedTranscribeOptions } from "./transcribe_options.ts";

/** What a model that listens is for those who speak to it. */
export interface SpeechModel {
  readonly model: LoadedModel;
  readonly sound: SpeechConfig;
  readonly vocabulary: SpeechVocabulary;
}

/** @throws {UnsupportedError} If the model does not listen. */
export function speechModelOf(model: LoadedModel): SpeechModel {
  const { source, name } = model.runtime;
  if (!source?.sound) {
    throw new UnsupportedError("does not listen: it is no speech recogniser", {
      ...{ file: name, remedy: "Load one, such as whisper-tiny" },
    });
  }
  const { sound, start } = source;
  const vocabulary = speechVocabulary(model.tokenizer, {
    ...{ start: start[0]!, config: sound.tokens, name },
  });
  return { model, sound, vocabulary };
}

/** How an answer is wanted. */
export interface AnswerWish {
  readonly hasTimestamps: boolean;
  readonly temperature: number;
  readonly maxTokens: number;
  readonly seed: number | undefined;
  readonly signal: AbortSignal;
}

/** What a model says to a window. */
export interface Answer {
  /** With the end token, if it came. */
  readonly ids: readonly number[];
  /** Mean of the logarithms of their probabilities. */
  readonly logProbability: number;
  readonly temperature: number;
  readonly seed: number;
  readonly stats: GenerationStats;
}

/** An answer that was judged. */
export interface JudgedAnswer extends Answer {
  /** By which factor zlib makes the tokens smaller. */
  readonly compression: number;
  /** Whether nothing is said. */
  readonly isSilent: boolean;
}

/** A session and the window that it heard last. */
export interface Listener extends Disposable {
  /** Reads a window: f32[mels, frames]. */
  hear(features: Float32Array, signal: AbortSignal): Promise<void>;
  /** Logits behind some tokens: with what an answer would begin. A view. */
  logitsAfter(tokens: readonly number[], signal: AbortSignal): Promise<Float32Array>;
  /** The answer to a prompt. */
  answer(prompt: readonly number[], wish: AnswerWish): Promise<Answer>;
  /**
   * The position of the sound at which each token of an answer ends; the last one, which as a rule is the end token,
   * stands where the one before it does. For models loaded with `words`.
   */
  times(ids: readonly number[], wish: TimesWish): Promise<readonly number[]>;
}

/** An answer whose tokens are timed. */
export interface TimesWish {
  readonly prompt: readonly number[];
  /** Positions of the window that hold sound. */
  readonly length: number;
  readonly signal: AbortSignal;
}

/** Takes a session of the model, when there is one. */
export async function openListener(
  { model, vocabulary }: SpeechModel,
  signal: AbortSignal,
): Promise<Listener> {
  const session = await model.borrow(0, { priority: 0, signal });
  const { words, capacity = 0 } = model.runtime.source ?? {};
  const keys = words && !words.looks ? createHeadRows(words, capacity) : undefined;
  return {
    async hear(features, signal) {
      using _turn = await session.acquire(signal);
      await session.encodeNow(features, {
        signal,
        read(executable) {
          const all = { from: 0, count: capacity, to: 0 };
          if (keys) copyHeadRows(keys, executable, { words: words!, role: "key", ...all });
        },
      });
    },
    async logitsAfter(tokens, signal) {
      await session.sync(tokens, { signal });
      return session.logits();
    },
    async answer(prompt, { hasTimestamps, temperature, maxTokens, seed, signal }) {
      const rules = speechRules(vocabulary, {
        ...{ hasTimestamps, vocabulary: model.tokenizer.vocabSize },
      });
      const choice = temperature === 0 ? "greedy" : { name: "temperature", temperature };
      const generation = startGeneration(session, { tokens: prompt, keep: 0, continues: false }, {
        samplers: [rules.step, choice],
        maxTokens: Math.min(maxTokens, session.capacity - prompt.length),
        ...{ onContextFull: "stop", signal },
        ...seed !== undefined && { seed },
      });
      const { ids, stats, seed: used } = await generation.result;
      signal.throwIfAborted();
      const logProbability = rules.sumOf(ids) / Math.max(1, ids.length);
      return { ids, stats, temperature, logProbability, seed: used };
    },
    async times(ids, { prompt, length, signal }) {
      const count = ids.length - 1;
      if (count < 1) return ids.map(() => 0);
      const queries = createHeadRows(words!, count);
      using _turn = await session.acquire(signal);
      await session.syncNow(prompt, { signal });
      await session.evalNow(ids.slice(0, -1), {
        signal,
        onPart(executable, { from, to, row }) {
          // Rows of the prompt may have to be computed again.
          const first = Math.max(from, prompt.length);
          copyHeadRows(queries, executable, {
            ...{ words: words!, role: "query", from: row + first - from },
            ...{ count: Math.max(0, to - first), to: first - prompt.length },
          });
        },
      });
      const steps = tokenTimes({ queries, keys }, { length, words: words! });
      const times = await runSteps(steps, signal);
      return [...times, times.at(-1)!];
    },
    [Symbol.dispose]: () => session.dispose(),
  };
}

/** Asks with one temperature after the other until an answer is good, or there is none left. */
export async function goodAnswer(
  listener: Listener,
  { prompt, noSpeech, vocabularySize, wish }: {
    readonly prompt: readonly number[];
    /** Probability of silence; 0 where it is not asked for. */
    readonly noSpeech: number;
    readonly vocabularySize: number;
    readonly wish: Omit<AnswerWish, "temperature">;
  },
  { temperatures, maxCompression, minLogProbability, maxNoSpeech }: ResolvedTranscribeOptions,
): Promise<JudgedAnswer> {
  for (const [i, temperature] of temperatures.entries()) {
    const answer = await listener.answer(prompt, { ...wish, temperature });
    const compression = await compressionOf(answer.ids, vocabularySize);
    const isUnlikely = answer.logProbability < minLogProbability;
    const isSilent = isUnlikely && noSpeech > maxNoSpeech;
    const isGood = isSilent || !isUnlikely && compression <= maxCompression;
    if (isGood || i === temperatures.length - 1) return { ...answer, compression, isSilent };
  }
  throw new RangeError("Cannot answer without a temperature");
}

/** As transformers has it: the ids as little-endian bytes, as many as the vocabulary needs. */
async function compressionOf(ids: readonly number[], vocabulary: number): Promise<number> {
  const width = Math.floor(Math.log2(vocabulary) / 8) + 1;
  const bytes = Uint8Array.from(
    { length: ids.length * width },
    (_, i) => ids[Math.floor(i / width)]! >>> 8 * (i % width),
  );
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return bytes.length / (await new Response(packed).bytes()).length;
}
