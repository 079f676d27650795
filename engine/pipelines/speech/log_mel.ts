// Log-mel features as Whisper takes them (Radford et al. 2022; transformers' WhisperFeatureExtractor): the power
// spectrum of frames under a Hann window, summed into mel bands, log10, at most 8 (80 dB) below the loudest, and
// (x + 4) / 4. Frames are centred: the sound goes on mirrored at both ends. Two frames are one complex transform.
//
// Sums are float64. transformers sums in float32, so where a band is nearly silent the two differ, by 6e-5 at most on
// its own test sounds; its NumPy path and its torch path differ by as much.

import { pause } from "../../pause.ts";
import { createFft } from "./fft.ts";
import { type MelFilter, melFilters } from "./mel_filters.ts";

/** How features are made. */
export interface LogMelSettings {
  /** Bands. */
  readonly mels: number;
  /** Samples a second. */
  readonly rate: number;
  /** Samples of a frame. */
  readonly frame: number;
  /** Samples from a frame to the next. */
  readonly hop: number;
}

/** Features of a sound. */
export interface LogMel {
  /** f32[mels, frames]. */
  readonly values: Float32Array;
  readonly mels: number;
  readonly frames: number;
}

/** 80 dB, in powers of ten. */
const RANGE = 8;
/** What silence counts as. */
const FLOOR = 1e-10;
/** Frames between two turns of the event loop: some tens of milliseconds. */
const TURN = 1024;

/**
 * Features of a sound; one frame for every `hop` whole samples.
 *
 * @param samples One channel at `rate`, between -1 and 1.
 */
export async function logMel(
  samples: Float32Array,
  { signal, ...settings }: LogMelSettings & {
    /** Stops between two pieces of it. */
    readonly signal?: AbortSignal;
  },
): Promise<LogMel> {
  const { mels, rate, frame, hop } = settings;
  const frames = Math.floor(samples.length / hop), bins = Math.floor(frame / 2) + 1;
  const filters = melFilters({ mels, bins, rate });
  const values = new Float32Array(mels * frames);
  const read = createFrameReader(samples, settings);
  const fft = createFft(frame);
  const power = [new Float64Array(bins), new Float64Array(bins)] as const;
  let max = -Infinity;
  for (let at = 0; at < frames; at += 2) {
    if (at % TURN === 0) {
      await pause();
      signal?.throwIfAborted();
    }
    read(at, fft.re);
    read(at + 1, fft.im);
    fft.run();
    splitPower(fft, power);
    for (let i = 0; i < 2 && at + i < frames; i++) {
      for (let mel = 0; mel < mels; mel++) {
        const value = Math.log10(Math.max(FLOOR, bandPower(filters[mel]!, power[i]!)));
        values[mel * frames + at + i] = value;
        if (value > max) max = value;
      }
    }
  }
  const least = max - RANGE;
  for (let i = 0; i < values.length; i++) values[i] = (Math.max(values[i]!, least) + 4) / 4;
  return { values, mels, frames };
}

/** Reads frames under their window. */
function createFrameReader(
  samples: Float32Array,
  { frame, hop }: LogMelSettings,
): (index: number, target: Float64Array) => void {
  const window = Float64Array.from(
    { length: frame },
    (_, i) => 0.5 - 0.5 * Math.cos(2 * Math.PI * i / frame),
  );
  const { length } = samples, half = Math.floor(frame / 2);
  return (index, target) => {
    const start = index * hop - half;
    const isInside = start >= 0 && start + frame <= length;
    for (let i = 0; i < frame; i++) {
      const at = isInside ? start + i : mirrored(start + i, length);
      target[i] = samples[at]! * window[i]!;
    }
  };
}

/** Where a place outside of a sound is found inside. */
function mirrored(at: number, length: number): number {
  if (length === 1) return 0;
  const period = 2 * (length - 1);
  const place = ((at % period) + period) % period;
  return place < length ? place : period - place;
}

/** Spectra of two real signals out of that of the first + i times the second, as powers. */
function splitPower(
  { re, im }: { readonly re: Float64Array; readonly im: Float64Array },
  [first, second]: readonly [Float64Array, Float64Array],
): void {
  const { length } = re;
  for (let k = 0; k < first.length; k++) {
    const mirror = k === 0 ? 0 : length - k;
    const a = re[k]!, b = im[k]!, c = re[mirror]!, d = im[mirror]!;
    first[k] = ((a + c) ** 2 + (b - d) ** 2) / 4;
    second[k] = ((b + d) ** 2 + (c - a) ** 2) / 4;
  }
}

function bandPower({ first, weights }: MelFilter, power: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) sum += weights[i]! * power[first + i]!;
  return sum;
}
