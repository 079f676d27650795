// transcribe(): from sound to text with times. Long sounds are read a window after the other, each beginning where the
// last whole stretch of the one before ended (Whisper's sequential algorithm, as transformers has it); with a detector
// of speech windows are cut where nobody speaks and are computed side by side.

import { isReasonOf } from "../../pause.ts";
import {
  createGeneration,
  type GenerationStats,
  type GenerationSteps,
} from "../../decode/generation.ts";
import { LoadedModel } from "../../decode/loaded_model.ts";
import { createMeter, statsOf } from "../../decode/meter.ts";
import type { Model } from "../../decode/model.ts";
import { ResourceError } from "../../errors.ts";
import type { Wave } from "../../formats/media/wav.ts";
import { type Listener, openListener, type SpeechModel, speechModelOf } from "./listener.ts";
import { type ReadState, readStretch } from "./read_stretch.ts";
import { checkRate, resample } from "./resample.ts";
import { speechStretches, type Stretch } from "./speech_stretches.ts";
import type { Transcript, Transcription, TranscriptSegment } from "./transcript.ts";
import {
  type ResolvedTranscribeOptions,
  resolveTranscribeOptions,
  type TranscribeOptions,
} from "./transcribe_options.ts";

/**
 * Writes down what is said, or translates it into English.
 *
 * Nothing is computed before somebody reads; segments come a window at a time.
 *
 * @param model A speech recogniser (Whisper); loaded with `sessions`, it reads windows found by `vad` side by side.
 * @param sound Samples of one channel at the model's rate (16 kHz), or a sound with its rate, which is resampled.
 * @throws {RangeError | TypeError} At once, on a bad option or sound.
 * @throws {TypeError} At once, if words are to be timed by a model that was loaded without `words`.
 * @throws {UnsupportedError} At once, if the model does not listen, or does not know a language or task.
 * @throws {ResourceError} At once, if the sound is longer than `maxSeconds`.
 *
 * @example
 * ```ts ignore
 * import { load, readSound, transcribe } from "@troodon/troodon";
 *
 * using model = await load("whisper-tiny");
 * const sound = await readSound(await Deno.readFile("talk.wav"));
 * for await (const { start, text } of transcribe(model, sound)) console.log(start, text);
 * ```
 * @category Speech
 */
export function transcribe(
  model: Model,
  sound: Float32Array | Wave,
  options: TranscribeOptions = {},
): Transcription {
  const resolved = resolveTranscribeOptions(options);
  if (!(model instanceof LoadedModel)) {
    throw new TypeError("Cannot transcribe: give a model from load()");
  }
  const speech = speechModelOf(model);
  const { rate } = speech.sound.features;
  const samples = samplesOf(sound, { rate, maxSeconds: resolved.maxSeconds });
  checkWish(speech, samples, resolved);
  return createGeneration<TranscriptSegment, Transcript>((leave) => {
    const { signal } = resolved;
    return listen(speech, samples, {
      options: resolved,
      signal: signal ? AbortSignal.any([signal, leave]) : leave,
    });
  });
}

/** @throws {RangeError | TypeError | ResourceError} If it is no sound, or too long. */
function samplesOf(
  sound: Float32Array | Wave,
  { rate, maxSeconds }: { readonly rate: number; readonly maxSeconds: number },
): Float32Array {
  const given = sound instanceof Float32Array ? { samples: sound, rate } : sound;
  const { samples, rate: from } = given ?? {};
  if (!(samples instanceof Float32Array)) {
    throw new TypeError("Cannot transcribe: samples are a Float32Array of one channel");
  }
  if (samples.length === 0) throw new RangeError("Cannot transcribe a sound without samples");
  checkRate(from);
  const seconds = samples.length / from;
  if (seconds > maxSeconds) {
    throw new ResourceError(
      `the sound has ${seconds.toFixed(0)} s, and ${maxSeconds} are the most that is read`,
      { remedy: "Cut it, or give a larger maxSeconds" },
    );
  }
  const odd = samples.findIndex((sample) => !Number.isFinite(sample));
  if (odd >= 0) throw new RangeError(`Cannot transcribe: sample ${odd} is ${samples[odd]}`);
  return resample(samples, { from, to: rate });
}

/** Refuses at once what the model cannot do. */
function checkWish(
  { model, vocabulary, sound: { features } }: SpeechModel,
  { length }: Float32Array,
  { language, task, timestamps, words, vad }: ResolvedTranscribeOptions,
): void {
  if (words && !model.runtime.source?.words) {
    throw new TypeError("Cannot time words: load the model with words: true");
  }
  const known = language === undefined ? undefined : vocabulary.codeOf(language);
  vocabulary.ask({ language: known, task, hasTimestamps: true });
  const window = features.frames * features.hop;
  if (timestamps || vad || length <= window) return;
  const seconds = (samples: number) => (samples / features.rate).toFixed(1);
  throw new RangeError(
    `Cannot leave timestamps out: the sound has ${seconds(length)} s, and a window ${
      seconds(window)
    } s; with vad it can be cut`,
  );
}

/** What is the same for all windows of a sound. */
interface ListenInput {
  readonly options: ResolvedTranscribeOptions;
  readonly signal: AbortSignal;
}

async function* listen(
  speech: SpeechModel,
  samples: Float32Array,
  { options, signal }: ListenInput,
): GenerationSteps<TranscriptSegment, Transcript> {
  const { rate } = speech.sound.features;
  const duration = samples.length / rate;
  const { language } = options;
  const segments: TranscriptSegment[] = [];
  const stats: GenerationStats[] = [];
  const state: ReadState = {
    language: language === undefined
      ? undefined
      : Promise.resolve(speech.vocabulary.codeOf(language)),
    seed: options.seed,
    onWindow(answer, seconds) {
      stats.push(answer);
      options.onProgress({ seconds: Math.min(seconds, duration), duration });
    },
  };
  let finishReason: Transcript["finishReason"] = "eos";
  try {
    const stretches = options.vad
      ? await speechStretches(options.vad, samples, { ...speech.sound.features, options, signal })
      : [{ start: 0, end: samples.length }];
    for await (const segment of inOrder(speech, { samples, stretches, state, options, signal })) {
      segments.push(segment);
      yield segment;
    }
  } catch (error) {
    if (!isReasonOf(signal, error)) throw error;
    finishReason = "abort";
  }
  return {
    ...{ finishReason, isWhole: true, seed: state.seed ?? 0, segments, duration },
    language: await state.language?.catch(() => undefined) ?? "en",
    stats: sumOfStats(stats, speech),
  };
}

interface OrderInput extends ListenInput {
  readonly samples: Float32Array;
  readonly stretches: readonly Stretch[];
  readonly state: ReadState;
}

/** Segments of all stretches, which are read side by side as far as there are sessions, unless one hangs on another. */
async function* inOrder(
  speech: SpeechModel,
  { samples, stretches, state, options, signal }: OrderInput,
): AsyncGenerator<TranscriptSegment> {
  const read = (listener: Listener, { start, end }: Stretch) =>
    readStretch(speech, {
      ...{ listener, options, state, signal, offset: start / speech.sound.features.rate },
      samples: samples.subarray(start, end),
    });
  const lanes = Math.min(stretches.length, speech.model.memory.sessions);
  if (lanes < 2 || options.conditionOnPrevious) {
    using listener = await openListener(speech, signal);
    for (const stretch of stretches) yield* read(listener, stretch);
    return;
  }
  const waiting = stretches.map(() => Promise.withResolvers<readonly TranscriptSegment[]>());
  let next = 0;
  const lane = async () => {
    using listener = await openListener(speech, signal);
    while (next < stretches.length) {
      const at = next++;
      waiting[at]!.resolve(await Array.fromAsync(read(listener, stretches[at]!)));
    }
  };
  const running = Promise.all(Array.from({ length: lanes }, lane));
  running.catch((error) => waiting.forEach(({ reject }) => reject(error)));
  for (const { promise } of waiting) promise.catch(() => {}); // whoever reads is told
  try {
    for (const { promise } of waiting) yield* await promise;
  } finally {
    await running.catch(() => {});
  }
}

/** Figures of all answers together. */
function sumOfStats(all: readonly GenerationStats[], { model }: SpeechModel): GenerationStats {
  const meter = createMeter();
  meter.firstTokenMs = all[0]?.firstTokenMs ?? 0;
  for (const one of all) {
    meter.promptTokens += one.promptTokens;
    meter.prefillTokens += one.prefillTokens;
    meter.prefillMs += msOf(one.prefillTokens, one.prefillPerSecond);
    meter.decodeTokens += one.decodeTokens;
    meter.decodeMs += msOf(one.decodeTokens - 1, one.decodePerSecond);
  }
  return statsOf(meter, model.runtime);
}

function msOf(count: number, perSecond: number): number {
  return perSecond > 0 ? count * 1000 / perSecond : 0;
}
