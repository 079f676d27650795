// What a transcription gives: segments as they are found, and all of them at the end.

import type { Chunk, Generation, GenerationResult } from "../../decode/generation.ts";

/**
 * A word and when it is said.
 * @category Speech
 */
export interface TranscriptWord {
  /** With the space in front of it, and marks at both ends. */
  readonly text: string;
  /** When it begins, in seconds. */
  readonly start: number;
  /** When it ends, in seconds. */
  readonly end: number;
}

/**
 * A stretch of speech and its text.
 * @category Speech
 */
export interface TranscriptSegment extends Chunk {
  /** When it begins, in seconds. */
  readonly start: number;
  /** When it ends, in seconds. */
  readonly end: number;
  /** Its words, with the option `words`. */
  readonly words?: readonly TranscriptWord[];
  /** How its tokens were drawn; 0: the likeliest. */
  readonly temperature: number;
  /** Mean log-probability of the tokens of its window. */
  readonly logProbability: number;
  /** By which factor zlib makes the tokens of its window smaller: much where they repeat themselves. */
  readonly compression: number;
}

/**
 * A whole transcription.
 * @category Speech
 */
export interface Transcript extends GenerationResult {
  /** Code of the language: what was asked for, or what was heard. */
  readonly language: string;
  /** Seconds of sound. */
  readonly duration: number;
  /** Stretches of speech in order. */
  readonly segments: readonly TranscriptSegment[];
}

/**
 * A transcription under way: iterate over its segments, or await `text()` or `result`.
 * @category Speech
 */
export type Transcription = Generation<TranscriptSegment, Transcript>;
