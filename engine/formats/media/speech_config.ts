// What the files beside a speech recogniser say: preprocessor_config.json how sound becomes features, and
// generation_config.json which tokens ask for a language, a task and timestamps (transformers' WhisperFeatureExtractor
// and WhisperGenerationMixin). Tokens that it does not name are found in the tokenizer by whoever needs them.

import { FormatError } from "../../errors.ts";
import { checkFields, type FieldTable, rows } from "../field_table.ts";
import type { MetadataValue, WeightFile } from "../source.ts";
import { asObject, idsOf, readJson } from "../strict_json.ts";
import { COUNT, FLAG, whole } from "../../record.ts";

/** How sound becomes features. */
export interface SoundFeatures {
  /** Mel bands. */
  readonly mels: number;
  /** Samples a second. */
  readonly rate: number;
  /** Samples of a frame. */
  readonly frame: number;
  /** Samples from a frame to the next. */
  readonly hop: number;
  /** Frames of a window: what the encoder takes at once. */
  readonly frames: number;
}

/** Tokens of a speech recogniser, as its files name them. */
export interface SpeechTokens {
  /** Language codes with their tokens; empty where they are not named. */
  readonly languages: ReadonlyMap<string, number>;
  /** Tasks with theirs. */
  readonly tasks: ReadonlyMap<string, number>;
  /** Whether it knows more than English; undefined: nobody says. */
  readonly isMultilingual: boolean | undefined;
  /** Written where no timestamps are wanted; the token behind it is that of 0 seconds. */
  readonly noTimestamps: number | undefined;
  /** In front of what was said before. */
  readonly previous: number | undefined;
  /** The first timestamp is at most so many steps. */
  readonly lastFirstTimestamp: number | undefined;
  /** Tokens that are never taken, and those that are not taken first. */
  readonly suppressed: readonly number[];
  readonly suppressedFirst: readonly number[];
}

/** What files say of a model that listens. */
export interface SpeechConfig {
  readonly features: SoundFeatures;
  /** Frames of features that a row of the encoder, and a step of timestamps, stands for. */
  readonly framesPerPosition: number;
  readonly tokens: SpeechTokens;
}

const PREPROCESSOR = "preprocessor_config.json", PROCESSOR = "processor_config.json";
const GENERATION = "generation_config.json";

/** Fields of a feature extractor. */
const EXTRACTOR_FIELDS: FieldTable = {
  feature_extractor_type: { only: ["WhisperFeatureExtractor"] },
  ...rows("read", "feature_size", "sampling_rate", "n_fft", "hop_length"),
  dither: { only: [0] },
  padding_value: { only: [0] },
  padding_side: { only: ["right"] },
  do_normalize: { only: [false] },
  ...rows(
    { harmless: "the encoder says how long a window is" },
    ...["chunk_length", "n_samples", "nb_max_frames"],
  ),
  return_attention_mask: { harmless: "no mask is needed" },
  processor_class: { harmless: "it says who reads the file" },
  mel_filters: { harmless: "they follow from the other fields" },
};

/** What the graph of a model says of its features. */
export interface EncoderShape {
  readonly mels: number;
  readonly frames: number;
  readonly framesPerPosition: number;
}

/**
 * Reads the files of a model that listens.
 *
 * @throws {FormatError} If they do not say how features are made, or contradict the model.
 * @throws {UnsupportedError} If they ask for other features.
 */
export async function readSpeechConfig(
  file: Pick<WeightFile, "name" | "readText">,
  { mels, frames, framesPerPosition }: EncoderShape,
): Promise<SpeechConfig> {
  const [place, extractor] = await readExtractor(file);
  checkFields(extractor, EXTRACTOR_FIELDS, { file: file.name, place });
  const size = (key: string, most: number) => {
    const value = extractor[key];
    if (whole("", { least: 1, most }).accepts(value)) return value;
    const at = { file: file.name, place: `${place}, ${key}` };
    throw new FormatError(`must be a whole number from 1 to ${most}, and is ${value}`, at);
  };
  if (size("feature_size", 1 << 10) !== mels) {
    throw new FormatError(`is ${extractor.feature_size}, and the model takes ${mels} mel bands`, {
      ...{ file: file.name, place: `${place}, feature_size` },
    });
  }
  const rate = size("sampling_rate", 768_000);
  const frame = size("n_fft", 1 << 16), hop = size("hop_length", frame);
  return {
    features: { mels, frames, rate, frame, hop },
    framesPerPosition,
    tokens: tokensOf(asObject(await readJson(file, GENERATION)) ?? {}),
  };
}

/** A head of a decoder's attention to its source: its layer, and its place there. */
export type SourceHead = readonly [layer: number, head: number];

/**
 * The heads that follow what is heard, by which words are timed: those that generation_config.json names, else all of
 * the upper half of the layers, as openai/whisper has it.
 *
 * @throws {FormatError} If one is not there.
 */
export async function readAlignmentHeads(
  file: Pick<WeightFile, "name" | "readText">,
  { layers, heads }: { readonly layers: number; readonly heads: number },
): Promise<readonly SourceHead[]> {
  const given = asObject(await readJson(file, GENERATION))?.alignment_heads;
  if (given === undefined || given === null) {
    const from = Math.floor(layers / 2);
    return Array.from(
      { length: (layers - from) * heads },
      (_, i) => [from + Math.floor(i / heads), i % heads] as const,
    );
  }
  const isHead = (value: unknown): boolean =>
    Array.isArray(value) && value.length === 2 && value.every(COUNT.accepts) &&
    value[0] < layers && value[1] < heads;
  if (!Array.isArray(given) || given.length === 0 || !given.every(isHead)) {
    throw new FormatError(
      `must be pairs of a layer below ${layers} and a head below ${heads}, and is ${
        JSON.stringify(given)
      }`,
      { file: file.name, place: `${GENERATION}, alignment_heads` },
    );
  }
  return given as unknown as readonly SourceHead[];
}

type Json = { readonly [key: string]: MetadataValue };

async function readExtractor(
  file: Pick<WeightFile, "name" | "readText">,
): Promise<[place: string, json: Json]> {
  const own = asObject(await readJson(file, PREPROCESSOR));
  if (own) return [PREPROCESSOR, own];
  const shared = asObject(asObject(await readJson(file, PROCESSOR))?.feature_extractor);
  if (shared) return [PROCESSOR, shared];
  throw new FormatError("is missing, and without it sound cannot be made into features", {
    ...{ file: file.name, place: PREPROCESSOR },
    remedy: "Put it beside the weights",
  });
}

function tokensOf(json: Json): SpeechTokens {
  const id = (key: string) => idsOf(json[key])[0];
  return {
    languages: tableOf(json.lang_to_id),
    tasks: tableOf(json.task_to_id),
    isMultilingual: FLAG.accepts(json.is_multilingual) ? json.is_multilingual : undefined,
    noTimestamps: id("no_timestamps_token_id"),
    previous: id("prev_sot_token_id"),
    lastFirstTimestamp: id("max_initial_timestamp_index"),
    suppressed: idsOf(json.suppress_tokens),
    suppressedFirst: idsOf(json.begin_suppress_tokens),
  };
}

/** Ids by name; `<|en|>` is `en`. */
function tableOf(value: MetadataValue | undefined): Map<string, number> {
  return new Map(
    Object.entries(asObject(value) ?? {}).flatMap(([name, id]) =>
      COUNT.accepts(id) ? [[name.replace(/^<\|(.*)\|>$/, "$1"), id] as const] : []
    ),
  );
}
