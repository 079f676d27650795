// What files say about a model beside its graph: how an encoder's rows become vectors and how long a
// sequence may be, and with what a decoder behind an encoder begins.

import type { EncoderFacts, Pooling, SourceMemory, WholeTexts } from "../decode/runtime.ts";
import { FormatError, SourceError, UnsupportedError } from "../errors.ts";
import { checkFields, type FieldTable } from "../formats/field_table.ts";
import type { MetadataValue, WeightFile } from "../formats/source.ts";
import { asObject, parseJson } from "../formats/strict_json.ts";
import { readGenerationConfig } from "../text/generation_config.ts";
import { readSpeechConfig } from "../formats/media/speech_config.ts";
import { needed } from "./blocks/context.ts";
import { framesPerPosition } from "./blocks/sound_stem.ts";
import type { ModelParts } from "./build.ts";
import type { PreparedModel } from "./prepare.ts";

/** Keys of sentence-transformers' pooling file, and what they mean here. */
const POOLINGS: Readonly<Record<string, Pooling>> = {
  pooling_mode_mean_tokens: "mean",
  pooling_mode_cls_token: "cls",
  pooling_mode_lasttoken: "last",
};

/** Files of sentence-transformers beside an encoder, and what becomes of their fields. */
const SENTENCE_FIELDS: Readonly<Record<string, FieldTable>> = {
  "sentence_bert_config.json": {
    max_seq_length: "read",
    do_lower_case: { only: [false] },
    "*": { harmless: "it is for how the library loads a model" },
  },
  "config_sentence_transformers.json": {
    default_prompt_name: { only: [] },
    "*": { harmless: "prompts and comparisons are the caller's" },
  },
};
/** Steps behind the encoder that embed() does by itself. */
const KNOWN_MODULES = /\.(Transformer|Pooling|Normalize)$/;

/** Numbers of GGUF's pooling_type; 4 is a reranker, whose vectors nobody wants. */
const POOLING_TYPES: Readonly<Record<number, Pooling>> = {
  1: "mean",
  2: "cls",
  3: "last",
  4: "cls",
};

/**
 * Facts about an encoder.
 *
 * @throws {UnsupportedError} If its files ask for a pooling, or for steps behind it, that are not built.
 */
export async function encoderFacts(
  file: WeightFile,
  { plan, limits, spec, parts }: PreparedModel,
): Promise<EncoderFacts> {
  await checkSentenceFiles(file);
  const { max_seq_length: longest } = await readJson(file, "sentence_bert_config.json");
  const head = (["logits", "scores", "vectors"] as const)
    .find((name) => plan.graph.outputs.some((output) => output.name === name));
  const output = plan.graph.outputs.find(({ name }) => name === head);
  const width = Number(output?.shape.at(-1) ?? 0);
  return {
    maxTokens: typeof longest === "number"
      ? Math.min(longest, limits.contextLength)
      : limits.contextLength,
    pooling: await poolingOf(file, "mean"),
    head,
    headWidth: width,
    ...labelsOf(file, head === "scores" ? width : 0),
    pairSeparators: spec.pairSeparators ?? 1,
    ...spec.pool && { whole: wholeTexts(parts, limits.contextLength) },
  };
}

/** Names of so many scores, and whether several may hold at once. */
export function labelsOf(
  { metadata }: WeightFile,
  count: number,
): Pick<EncoderFacts, "labels" | "isMultiLabel"> {
  const names = metadata.get("id2label") as Readonly<Record<string, unknown>> | undefined;
  return {
    labels: Array.from({ length: count }, (_, i) => String(names?.[i] ?? `LABEL_${i}`)),
    isMultiLabel: metadata.get("problem_type") === "multi_label_classification",
  };
}

/** An id of ends that transformers once wrote into every config of CLIP; what ends a text has the largest id there. */
const STALE_END = 2;

/** How texts are filled up, and which row stands for one. */
function wholeTexts({ resolved: { spec }, file }: ModelParts, longest: number): WholeTexts {
  const { rows, padded } = spec.pool!, end = file.metadata.get("eos_token_id");
  const endOf = (tokens: readonly number[]): number =>
    typeof end === "number" && end !== STALE_END && tokens.includes(end)
      ? tokens.indexOf(end)
      : tokens.indexOf(Math.max(...tokens));
  return {
    rowOf: (tokens) => rows === "end" ? endOf(tokens) : rows === "last" ? tokens.length - 1 : 0,
    ...padded !== undefined && { padded: { id: padded, length: longest } },
  };
}

async function checkSentenceFiles(file: WeightFile): Promise<void> {
  for (const [name, table] of Object.entries(SENTENCE_FIELDS)) {
    checkFields(await readJson(file, name), table, { file: file.name, place: name });
  }
  for (const module of Object.values(await readJson(file, "modules.json"))) {
    const type = asObject(module)?.type;
    if (typeof type !== "string" || KNOWN_MODULES.test(type)) continue;
    throw new UnsupportedError(`has a ${type.split(".").at(-1)} module, which is not built`, {
      file: file.name,
      place: "modules.json",
      remedy: "Vectors without it are others: remove it from the list to have those",
    });
  }
}

/**
 * What a model's files say of pooling, or `usual` where they say nothing.
 *
 * @throws {UnsupportedError} If they ask for one that is not built.
 */
export async function poolingOf(file: WeightFile, usual: Pooling): Promise<Pooling> {
  const type = file.metadata.get(`${file.metadata.get("general.architecture")}.pooling_type`);
  if (typeof type === "number" && Object.hasOwn(POOLING_TYPES, type)) return POOLING_TYPES[type]!;
  const settings = Object.entries(await readJson(file, "1_Pooling/config.json"));
  const chosen = settings.filter(([key, value]) =>
    key.startsWith("pooling_mode_") && value === true
  );
  const known = chosen.map(([key]) => POOLINGS[key]);
  if (known.length === 0) return usual;
  if (known.length === 1 && known[0]) return known[0];
  throw new UnsupportedError(
    `asks for ${chosen.map(([key]) => key).join(" and ")}: known are ${
      Object.keys(POOLINGS).join(", ")
    }`,
    { file: file.name, place: "1_Pooling/config.json" },
  );
}

/**
 * Memory for sources, and the beginning of targets.
 *
 * @throws {FormatError} If the config does not say with which token a target begins, or files beside it not how sound
 * becomes features.
 */
export async function sourceMemory(
  file: WeightFile,
  { limits, params, spec, wordHeads }: PreparedModel,
): Promise<SourceMemory> {
  const { name } = file;
  const start = (await readGenerationConfig(file)).targetStart ?? params.targetStart;
  if (start === undefined) {
    throw new FormatError("is missing, and without it no target can begin", {
      file: name,
      place: "decoder_start_token_id",
    });
  }
  const facts = { start: [start], translation: spec.translation };
  const sound = spec.encoder?.sound;
  if (!sound) return { ...facts, capacity: limits.contextLength };
  const { melBands, sourceContext } = needed({ params, file: name }, [
    ...["melBands", "sourceContext"] as const,
  ]);
  const perPosition = framesPerPosition(sound);
  return {
    ...{ ...facts, capacity: sourceContext, words: wordHeads },
    sound: await readSpeechConfig(file, {
      ...{ mels: melBands, frames: sourceContext * perPosition, framesPerPosition: perPosition },
    }),
  };
}

async function readJson(
  file: WeightFile,
  name: string,
): Promise<Readonly<Record<string, MetadataValue>>> {
  let text: string | undefined;
  try {
    text = await file.readText?.(name);
  } catch (error) {
    // A file that was given without its folder has no companions, or none in other folders.
    if (!(error instanceof SourceError || error instanceof FormatError)) throw error;
  }
  if (text === undefined) return {};
  const json = parseJson(text, { file: file.name, place: name });
  return asObject(Array.isArray(json) ? { ...json } : json) ?? {};
}
