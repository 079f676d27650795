// translate() and beamSearch(): what an encoder-decoder makes of a source text. How a translation is asked
// for is data of the model's spec: tokens that name the languages, or words in front of the text.

import { adapterScales } from "../decode/adapter_scales.ts";
import { type EarlyStopping, searchBeams } from "../decode/beam_search.ts";
import { openBeams } from "../decode/beam_slots.ts";
import { startGeneration } from "../decode/generate.ts";
import { checkCount } from "../decode/generate_options.ts";
import type { Runtime, SourceMemory } from "../decode/runtime.ts";
import { UnsupportedError } from "../errors.ts";
import { LoadedModel } from "../decode/loaded_model.ts";
import type { Model } from "../decode/model.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/** Tokens where nobody says how many, and the model has room for them. */
const MOST_TOKENS = 200;

/**
 * Options of {@linkcode beamSearch}.
 * @category Encoders
 */
export interface BeamSearchOptions {
  /** How many texts are kept in mind, 1 to 64; the model needs one session more. Default 4. */
  readonly beams?: number;
  /** Most tokens to take. Default 200, or the model's capacity. */
  readonly maxTokens?: number;
  /** Exponent of the length by which scores are divided: above 0 favours long texts. Default 1. */
  readonly lengthPenalty?: number;
  /**
   * When a search ends that has found `beams` texts: at once (true), when no beginning counts more than the worst of
   * them (false, the default), or when none could become better at any length ("never").
   */
  readonly earlyStopping?: EarlyStopping;
  /** Tokens with which the target begins, behind the model's own beginning. Default none. */
  readonly prefix?: readonly number[];
  /** Ids at which a text ends. Default: the tokenizer's. */
  readonly endIds?: readonly number[];
  /** How much each adapter counts, by name, as {@linkcode GenerateOptions.adapters}. */
  readonly adapters?: Readonly<Record<string, number>>;
  /** Stops between two steps. */
  readonly signal?: AbortSignal;
}

const BEAM_KEYS: OptionKeys<BeamSearchOptions> = {
  beams: true,
  maxTokens: true,
  lengthPenalty: true,
  earlyStopping: true,
  prefix: true,
  endIds: true,
  adapters: true,
  signal: true,
};

/**
 * A text that a beam search found.
 * @category Encoders
 */
export interface BeamResult {
  /** New tokens, without the prefix; an end token is the last. */
  readonly ids: readonly number[];
  /** Text of it, without special tokens; empty where the model has no tokenizer. */
  readonly text: string;
  /** Σ ln p / length^lengthPenalty; higher is better. */
  readonly score: number;
}

/**
 * The most probable answers of an encoder-decoder, best first.
 *
 * @param model An encoder-decoder, loaded with `sessions` of at least `beams + 1`; `logitRows: beams` computes
 * all beams in one step.
 * @param source Text, or token ids to which nothing is added.
 * @throws {UnsupportedError} If the model has no encoder or no decoder.
 * @throws {RangeError} On a bad option. @throws {ResourceError} If sessions are too few, or the source too long.
 *
 * @example
 * ```ts
 * import { beamSearch, load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("translator", { sessions: 4, logitRows: 3 });
 * const options = { beams: 3, maxTokens: 5, endIds: [2] };
 * const [best, ...others] = await beamSearch(model, [13, 45, 91, 2], options);
 * assertEquals([best!.ids.length, others.length], [5, 2]);
 * ```
 * @category Encoders
 */
export async function beamSearch(
  model: Model,
  source: string | readonly number[],
  options: BeamSearchOptions = {},
): Promise<BeamResult[]> {
  checkOptionKeys(options, { of: "beamSearch()", known: BEAM_KEYS });
  const { runtime, memory } = sourceOf(model, "search with beams");
  const { beams = 4, lengthPenalty = 1, prefix = [], signal } = options;
  const maxTokens = options.maxTokens ?? Math.min(MOST_TOKENS, runtime.capacity);
  checkCount("beams", { value: beams, min: 1, max: 64 });
  checkCount("maxTokens", { value: maxTokens, min: 1, max: runtime.capacity });
  if (!Number.isFinite(lengthPenalty)) {
    throw new RangeError(`Cannot use lengthPenalty ${lengthPenalty}: it is a number`);
  }
  const { earlyStopping = false } = options;
  if (typeof earlyStopping !== "boolean" && earlyStopping !== "never") {
    throw new RangeError(`Cannot use earlyStopping ${earlyStopping}: it is true, false or "never"`);
  }
  const tokens = typeof source === "string" ? runtime.tokenizer().encode(source) : source;
  const endIds = new Set(options.endIds ?? runtime.tokenizer().endOfGenerationIds);
  using slots = await openBeams(model as LoadedModel, {
    ...{ tokens, beams, signal },
    scales: adapterScales(runtime, options.adapters),
  });
  const start = [...memory.start, ...prefix];
  const found = await searchBeams({
    beams,
    maxTokens: Math.min(maxTokens, runtime.capacity - start.length),
    lengthPenalty,
    earlyStopping,
    endIds,
    signal,
    first: await slots.begin(start),
    step: slots.step,
  });
  const textOf = textOrNothing(runtime);
  return found.map(({ ids, score }) => ({ ids, score, text: textOf(ids) }));
}

/**
 * Options of {@linkcode translate}.
 * @category Encoders
 */
export interface TranslateOptions {
  /** Language of the text, as the model names it: `en` (M2M100), `English` (T5). */
  readonly from: string;
  /** Language to translate into. */
  readonly to: string;
  /** Texts kept in mind; 1 takes the best token each time. Default 1. */
  readonly beams?: number;
  /** See {@linkcode BeamSearchOptions.lengthPenalty}. */
  readonly lengthPenalty?: number;
  /** Most tokens to take. Default 200, or the model's capacity. */
  readonly maxTokens?: number;
  /** How much each adapter counts, by name, as {@linkcode GenerateOptions.adapters}. */
  readonly adapters?: Readonly<Record<string, number>>;
  /** Stops between two steps. */
  readonly signal?: AbortSignal;
}

const TRANSLATE_KEYS: OptionKeys<TranslateOptions> = {
  from: true,
  to: true,
  beams: true,
  lengthPenalty: true,
  maxTokens: true,
  adapters: true,
  signal: true,
};

/**
 * Translates a text with a translation model (M2M100, T5).
 *
 * @param model An encoder-decoder; for more than one beam loaded with `sessions` of `beams + 1`.
 * @throws {UnsupportedError} If the model translates nothing, or does not know a language.
 * @throws {RangeError} On a bad option. @throws {ResourceError} As {@linkcode beamSearch}.
 *
 * @example
 * ```ts ignore
 * import { load, translate } from "@troodon/troodon";
 *
 * using model = await load("hf:google-t5/t5-small");
 * console.log(await translate(model, "The house is small.", { from: "English", to: "German" }));
 * ```
 * @category Encoders
 */
export async function translate(
  model: Model,
  text: string,
  options: TranslateOptions,
): Promise<string> {
  checkOptionKeys(options, { of: "translate()", known: TRANSLATE_KEYS });
  const { runtime, memory } = sourceOf(model, "translate");
  const { beams = 1, lengthPenalty, adapters, signal } = options;
  const maxTokens = options.maxTokens ?? Math.min(MOST_TOKENS, runtime.capacity);
  checkCount("beams", { value: beams, min: 1, max: 64 });
  const { source, prefix } = requestOf(runtime, memory, text, options);
  if (beams > 1) {
    const [best] = await beamSearch(model, source, {
      ...{ beams, maxTokens, prefix },
      ...lengthPenalty !== undefined && { lengthPenalty },
      ...adapters && { adapters },
      ...signal && { signal },
    });
    return best!.text;
  }
  const tokens = [...memory.start, ...prefix];
  return await startGeneration(model, { source, tokens, keep: 0, continues: false }, {
    ...{ maxTokens, onContextFull: "stop" },
    ...adapters && { adapters },
    ...signal && { signal },
  }).text();
}

interface Request {
  readonly source: readonly number[];
  readonly prefix: readonly number[];
}

function requestOf(
  runtime: Runtime,
  { translation }: SourceMemory,
  text: string,
  { from, to }: TranslateOptions,
): Request {
  if (!translation) {
    throw new UnsupportedError("is not known to translate", {
      file: runtime.name,
      remedy: "Use generate() or beamSearch()",
    });
  }
  const tokenizer = runtime.tokenizer();
  const fill = (template: string) => template.replaceAll("{from}", from).replaceAll("{to}", to);
  const languageToken = (template: string | undefined, language: string) => {
    if (template === undefined) return [];
    // Some vocabularies name the language alone (NLLB: eng_Latn).
    const id = tokenizer.idOf(fill(template)) ?? tokenizer.idOf(language);
    if (id !== undefined) return [id];
    throw new UnsupportedError(`does not know the language: it has no token ${fill(template)}`, {
      file: runtime.name,
    });
  };
  const { prompt, sourceToken, targetToken } = translation;
  const prefix = languageToken(targetToken, to);
  if (sourceToken === undefined) {
    return { source: tokenizer.encode(fill(prompt ?? "") + text), prefix };
  }
  // The language stands where the tokenizer's own beginning would.
  const plain = tokenizer.encode(fill(prompt ?? "") + text, { addSpecial: false });
  const end = tokenizer.eosId === undefined ? [] : [tokenizer.eosId];
  return { source: [...languageToken(sourceToken, from), ...plain, ...end], prefix };
}

function sourceOf(
  model: Model,
  use: string,
): { readonly runtime: Runtime; readonly memory: SourceMemory } {
  if (!(model instanceof LoadedModel)) {
    throw new TypeError(`Cannot ${use}: give a model from load()`);
  }
  const { runtime } = model;
  if (runtime.source) return { runtime, memory: runtime.source };
  throw new UnsupportedError(`cannot ${use}: it is no encoder-decoder`, { file: runtime.name });
}

function textOrNothing(runtime: Runtime): (ids: readonly number[]) => string {
  try {
    const tokenizer = runtime.tokenizer();
    return (ids) => tokenizer.decode(ids, { skipSpecial: true });
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    return () => ""; // ids in, ids out
  }
}
