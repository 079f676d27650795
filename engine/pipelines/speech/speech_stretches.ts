// A sound cut where nobody speaks: what a detector found, joined as long as it fits one window.

import type { LoadedGraph } from "../../onnx/running/graph_types.ts";
import type { SoundFeatures } from "../../formats/media/speech_config.ts";
import { detectSpeech } from "./detect_speech.ts";
import { resample } from "./resample.ts";
import type { SpeechRate } from "./speech_detector.ts";
import type { SpeechSegment } from "./speech_segments.ts";
import type { ResolvedTranscribeOptions } from "./transcribe_options.ts";

/** Samples of a sound: the first, and the one after the last. */
export type Stretch = SpeechSegment;

/** Rate that detectors know. */
const DETECTOR_RATE: SpeechRate = 16000;

/** Stretches with speech, each of one window if nobody speaks for longer. */
export async function speechStretches(
  graph: LoadedGraph,
  samples: Float32Array,
  { rate, hop, frames, options, signal }: SoundFeatures & {
    readonly options: ResolvedTranscribeOptions;
    readonly signal: AbortSignal;
  },
): Promise<Stretch[]> {
  const heard = resample(samples, { from: rate, to: DETECTOR_RATE });
  const { segments } = await detectSpeech(graph, heard, {
    ...{ ...options.vadOptions, rate: DETECTOR_RATE, signal },
  });
  const factor = rate / DETECTOR_RATE;
  const own = segments.map(({ start, end }) => ({
    start: Math.floor(start * factor),
    end: Math.min(samples.length, Math.ceil(end * factor)),
  }));
  return joinStretches(own, hop * frames);
}

/** Neighbours become one as long as it has at most so many samples. */
function joinStretches(stretches: readonly Stretch[], most: number): Stretch[] {
  const joined: Stretch[] = [];
  for (const { start, end } of stretches) {
    const last = joined.at(-1);
    if (last && end - last.start <= most) joined[joined.length - 1] = { start: last.start, end };
    else joined.push({ start, end });
  }
  return joined;
}
