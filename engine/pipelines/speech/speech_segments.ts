// From probabilities of short chunks to stretches of speech, by the rules of Silero's get_speech_timestamps
// (silero-vad 6.2): speech begins at a threshold and ends only after silence below a lower one, short
// stretches are dropped, and what is left gets some room on both sides. Its limit on the length of one
// stretch is left out: cutting long speech is for whoever sends it on.

/**
 * Options of {@linkcode speechSegments}; times are milliseconds.
 * @category Speech
 */
export interface SpeechSegmentOptions {
  /** Probability from which a chunk is speech; default 0.5. */
  readonly threshold?: number | undefined;
  /** Probability below which speech may end; default `threshold` - 0.15, at least 0.01. */
  readonly endThreshold?: number | undefined;
  /** Shorter stretches are dropped; default 250. */
  readonly minSpeech?: number | undefined;
  /** Shorter silence does not end speech; default 100. */
  readonly minSilence?: number | undefined;
  /** Room before and after each stretch; default 30. */
  readonly pad?: number | undefined;
}

/**
 * A stretch of speech, in samples: the first one, and the one after the last.
 * @category Speech
 */
export interface SpeechSegment {
  /** The first sample. */
  readonly start: number;
  /** The sample after the last. */
  readonly end: number;
}

/** How the probabilities came about. */
export interface ChunkedAudio {
  /** Samples a second. */
  readonly rate: number;
  /** Samples a chunk. */
  readonly chunk: number;
  /** Samples in all; the last chunk may be longer than what was left for it. */
  readonly length: number;
}

/**
 * Stretches of speech.
 *
 * @param probabilities One a chunk.
 * @throws {RangeError} If a threshold is not between 0 and 1, or a time is negative.
 */
export function speechSegments(
  probabilities: ArrayLike<number>,
  audio: ChunkedAudio,
  options: SpeechSegmentOptions = {},
): SpeechSegment[] {
  const { threshold = 0.5, minSpeech = 250, minSilence = 100, pad = 30 } = options;
  const { endThreshold = Math.max(threshold - 0.15, 0.01) } = options;
  check({ threshold, endThreshold }, 1);
  check({ minSpeech, minSilence, pad }, Infinity);
  const samples = (ms: number) => audio.rate * ms / 1000;
  const found = stretches(probabilities, audio, {
    threshold,
    endThreshold,
    minSpeech: samples(minSpeech),
    minSilence: samples(minSilence),
  });
  return padded(found, samples(pad), audio.length);
}

function check(values: Readonly<Record<string, number>>, most: number): void {
  for (const [name, value] of Object.entries(values)) {
    if (value >= 0 && value <= most) continue;
    throw new RangeError(`Cannot find speech: ${name} is ${value}, not between 0 and ${most}`);
  }
}

/** In samples. */
interface Limits {
  readonly threshold: number;
  readonly endThreshold: number;
  readonly minSpeech: number;
  readonly minSilence: number;
}

function stretches(
  probabilities: ArrayLike<number>,
  { chunk, length }: ChunkedAudio,
  { threshold, endThreshold, minSpeech, minSilence }: Limits,
): SpeechSegment[] {
  const found: SpeechSegment[] = [];
  let start: number | undefined, silence: number | undefined;
  for (let i = 0; i < probabilities.length; i++) {
    const probability = probabilities[i]!, at = chunk * i;
    if (probability >= threshold) {
      start ??= at;
      silence = undefined;
    } else if (start !== undefined && probability < endThreshold) {
      silence ??= at;
      if (at - silence < minSilence) continue;
      if (silence - start > minSpeech) found.push({ start, end: silence });
      start = silence = undefined;
    }
  }
  if (start !== undefined && length - start > minSpeech) found.push({ start, end: length });
  return found;
}

// Room is taken from the silence between two stretches; where there is too little, both get half of it.
function padded(found: readonly SpeechSegment[], pad: number, length: number): SpeechSegment[] {
  const rooms = found.slice(1).map(({ start }, i) => {
    const silence = start - found[i]!.end;
    const half = Math.floor(silence / 2);
    return silence < 2 * pad ? half : pad;
  });
  return found.map(({ start, end }, i) => ({
    start: Math.floor(Math.max(0, start - (rooms[i - 1] ?? pad))),
    end: Math.floor(Math.min(length, end + (rooms[i] ?? pad))),
  }));
}
