// detectSpeech(): a whole recording at once, from samples to stretches of speech.

import type { LoadedGraph } from "../../onnx/running/graph_types.ts";
import { createSpeechDetector, type SpeechRate } from "./speech_detector.ts";
import {
  type SpeechSegment,
  type SpeechSegmentOptions,
  speechSegments,
} from "./speech_segments.ts";
import { createTurns } from "../../pause.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";

/**
 * Options of {@linkcode detectSpeech}.
 * @category Speech
 */
export interface DetectSpeechOptions extends SpeechSegmentOptions {
  /** Samples a second; default 16000. */
  readonly rate?: SpeechRate | undefined;
  /** Stops between two chunks. */
  readonly signal?: AbortSignal | undefined;
}

const KEYS: OptionKeys<DetectSpeechOptions> = {
  rate: true,
  signal: true,
  threshold: true,
  endThreshold: true,
  minSpeech: true,
  minSilence: true,
  pad: true,
};

/**
 * What was heard.
 * @category Speech
 */
export interface SpeechResult {
  /** Stretches of speech in samples. */
  readonly segments: readonly SpeechSegment[];
  /** Probability of speech, one a chunk. */
  readonly probabilities: Float32Array;
}

/**
 * Finds speech.
 *
 * @param graph A graph of Silero's form, from loadGraph().
 * @param samples One channel, between -1 and 1.
 * @throws {TypeError | RangeError} If the graph, the rate or an option does not fit.
 *
 * @example
 * ```ts ignore
 * import { detectSpeech, loadGraph, pullModel } from "@troodon/troodon";
 *
 * using graph = await loadGraph(await pullModel("silero-vad"));
 * const { segments } = await detectSpeech(graph, samples);
 * ```
 * @category Speech
 */
export async function detectSpeech(
  graph: LoadedGraph,
  samples: Float32Array,
  given: DetectSpeechOptions = {},
): Promise<SpeechResult> {
  checkOptionKeys(given, { of: "detectSpeech()", known: KEYS });
  const { rate = 16000, signal, ...options } = given;
  const detector = createSpeechDetector(graph, rate);
  const { chunk } = detector;
  const probabilities = new Float32Array(Math.ceil(samples.length / chunk));
  const turns = createTurns(signal);
  for (let i = 0; i < probabilities.length; i++) {
    const turn = turns();
    if (turn) await turn;
    probabilities[i] = await detector.next(samples.subarray(i * chunk, (i + 1) * chunk));
  }
  const audio = { rate, chunk, length: samples.length };
  return { segments: speechSegments(probabilities, audio, options), probabilities };
}
