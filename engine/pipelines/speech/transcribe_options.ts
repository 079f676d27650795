// Options of transcribe(), checked and completed.

import type { LoadedGraph } from "../../onnx/running/graph_types.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import type { SpeechSegmentOptions } from "./speech_segments.ts";
import type { SpeechTask } from "./speech_tokens.ts";

/**
 * How far a sound has been read.
 * @category Speech
 */
export interface TranscribeProgress {
  /** Seconds that are done. */
  readonly seconds: number;
  /** Seconds in all. */
  readonly duration: number;
}

/**
 * Options of {@linkcode transcribe}.
 * @category Speech
 */
export interface TranscribeOptions {
  /** Code or English name of the language that is spoken: `de`, `german`. Default: what the first window sounds like. */
  readonly language?: string | undefined;
  /** `translate` writes English, whatever is spoken. Default `transcribe`. */
  readonly task?: SpeechTask | undefined;
  /**
   * False lets the model write text alone, a window at a time: for sounds of one window, or with `vad`. Default true.
   */
  readonly timestamps?: boolean | undefined;
  /** Also tells when each word is said. The model must have been loaded with `words`. Default false. */
  readonly words?: boolean | undefined;
  /** A text with words and spellings that are likely, as if it had been said before. */
  readonly prompt?: string | undefined;
  /** Whether each window is told what was said in those before it. Default false: an error cannot go on for long. */
  readonly conditionOnPrevious?: boolean | undefined;
  /**
   * How tokens are drawn: 0 takes the likeliest; the next one is tried where an answer repeats itself or is unlikely.
   * Default 0, 0.2, 0.4, 0.6, 0.8, 1.
   */
  readonly temperatures?: readonly number[] | undefined;
  /** Tokens that zlib makes smaller than by this factor repeat themselves. Default 1.35; Infinity: nothing is too much. */
  readonly maxCompression?: number | undefined;
  /** A mean log-probability of tokens below this is too low. Default -1; -Infinity: none is. */
  readonly minLogProbability?: number | undefined;
  /** A window whose answer is unlikely, and that is silent with more than this probability, is left out. Default 0.6. */
  readonly maxNoSpeech?: number | undefined;
  /** Most tokens of a window. Default: as many as the model's context holds. */
  readonly maxTokens?: number | undefined;
  /** Seed of the random numbers of temperatures above 0. */
  readonly seed?: number | undefined;
  /**
   * A graph of Silero's form ({@linkcode detectSpeech}): stretches without speech are left out, and windows end where
   * nobody speaks. They are computed side by side, as many as the model has `sessions`, without `conditionOnPrevious`.
   */
  readonly vad?: LoadedGraph | undefined;
  /** How speech is told from silence, with `vad`. */
  readonly vadOptions?: SpeechSegmentOptions | undefined;
  /** Longest sound in seconds, so that a hostile file takes no time for ever. Default 86400, a day. */
  readonly maxSeconds?: number | undefined;
  /** Told after each window. */
  readonly onProgress?: ((progress: TranscribeProgress) => void) | undefined;
  /** Ends the transcription before the next step; not an error. */
  readonly signal?: AbortSignal | undefined;
}

/** Options with their defaults. */
export interface ResolvedTranscribeOptions {
  readonly language: string | undefined;
  readonly task: SpeechTask;
  readonly timestamps: boolean;
  readonly words: boolean;
  readonly prompt: string | undefined;
  readonly conditionOnPrevious: boolean;
  readonly temperatures: readonly number[];
  readonly maxCompression: number;
  readonly minLogProbability: number;
  readonly maxNoSpeech: number;
  readonly maxTokens: number;
  readonly seed: number | undefined;
  readonly vad: LoadedGraph | undefined;
  readonly vadOptions: SpeechSegmentOptions | undefined;
  readonly maxSeconds: number;
  readonly onProgress: (progress: TranscribeProgress) => void;
  readonly signal: AbortSignal | undefined;
}

const KEYS: OptionKeys<TranscribeOptions> = {
  ...{ language: true, task: true, timestamps: true, prompt: true, conditionOnPrevious: true },
  ...{ temperatures: true, maxCompression: true, minLogProbability: true, maxNoSpeech: true },
  ...{ words: true, maxTokens: true, seed: true, vad: true, vadOptions: true, maxSeconds: true },
  ...{ onProgress: true, signal: true },
};

const TEMPERATURES = [0, 0.2, 0.4, 0.6, 0.8, 1];

/**
 * Checks and completes options.
 *
 * @throws {RangeError} Naming the option, its value and what is allowed.
 */
export function resolveTranscribeOptions(options: TranscribeOptions): ResolvedTranscribeOptions {
  checkOptionKeys(options, { of: "transcribe()", known: KEYS });
  const resolved = {
    language: options.language,
    task: options.task ?? "transcribe",
    timestamps: options.timestamps ?? true,
    words: options.words ?? false,
    prompt: options.prompt,
    conditionOnPrevious: options.conditionOnPrevious ?? false,
    temperatures: options.temperatures ?? TEMPERATURES,
    maxCompression: options.maxCompression ?? 1.35,
    minLogProbability: options.minLogProbability ?? -1,
    maxNoSpeech: options.maxNoSpeech ?? 0.6,
    maxTokens: options.maxTokens ?? Infinity,
    seed: options.seed,
    vad: options.vad,
    vadOptions: options.vadOptions,
    maxSeconds: options.maxSeconds ?? 86_400,
    onProgress: options.onProgress ?? (() => {}),
    signal: options.signal,
  };
  const { task, temperatures } = resolved;
  if (task !== "transcribe" && task !== "translate") {
    throw new RangeError(`Cannot use task "${task}": it is transcribe or translate`);
  }
  const areNumbers = Array.isArray(temperatures) && temperatures.length > 0 &&
    temperatures.every((one) => Number.isFinite(one) && one >= 0);
  if (!areNumbers) {
    throw new RangeError(
      `Cannot use temperatures ${JSON.stringify(temperatures)}: they are numbers of 0 or more`,
    );
  }
  within("maxCompression", resolved.maxCompression, [0, Infinity]);
  within("minLogProbability", resolved.minLogProbability, [-Infinity, 0]);
  within("maxNoSpeech", resolved.maxNoSpeech, [0, 1]);
  within("maxTokens", resolved.maxTokens, [1, Infinity]);
  within("maxSeconds", resolved.maxSeconds, [0, Infinity]);
  return resolved;
}

function within(name: string, value: number, [least, most]: readonly [number, number]): void {
  if (value >= least && value <= most) return;
  throw new RangeError(`Cannot use ${name} ${value}: it is a number from ${least} to ${most}`);
}
