// What to load and how to ask it, from the configuration of Inferflow's engine: `[transformer_engine]` chooses a
// `[model.NAME]`, whose keys become options of load() and generate(). What generation_config.json says counts
// where the configuration is silent, and `default_prompt_template` is used (upstream reads neither, §10).

import type { QuantPolicy } from "../../quant/policy.ts";
import type { GenerateOptions } from "../decode/generate_options.ts";
import type { NamedEntry } from "../decode/sampling/chain.ts";
import { resolveOptions } from "../decode/sampling/options.ts";
import { FormatError } from "../errors.ts";
import type { IniFile } from "../formats/ini/ini.ts";
import { readTextFile } from "../formats/ini/read_ini.ts";
import { asObject, parseJson } from "../formats/strict_json.ts";
import { pathKind } from "../io.ts";
import { parseGroups } from "../place/grammar.ts";
import type { LoadOptions } from "../decode/model.ts";
import { halvesOf } from "../models/inferflow/translate.ts";
import { readSpecFile } from "../models/spec_file.ts";
import { findPromptTemplate, type PromptTemplate } from "../text/prompt_template.ts";
import { readWeightPolicy } from "./device_weights.ts";
import { keysOf } from "./keys.ts";
import {
  checkKeys,
  type Configuration,
  folderOf,
  neededText,
  numbered,
  numberOf,
  openConfiguration,
  textOf,
  wrong,
} from "./values.ts";

/** A model to be loaded and asked. */
export interface EngineConfig {
  /** Its name in the configuration. */
  readonly name: string;
  /** Path for load(). */
  readonly path: string;
  readonly load: LoadOptions;
  /** Number formats to round its weights to before it is loaded. */
  readonly weights: QuantPolicy | undefined;
  /** Options that every query has. */
  readonly generate: GenerateOptions;
  readonly encoderTemplate: PromptTemplate | undefined;
  readonly decoderTemplate: PromptTemplate | undefined;
  /** Templates of the configuration, by name. */
  readonly templates: Readonly<Record<string, string>>;
  readonly userTokenId: number | undefined;
  readonly assistantTokenId: number | undefined;
  /** Of a service. */
  readonly port: number;
}

const MODEL_DEFAULT_CONTEXT = 1024;

/** Names of number formats, in lower case. */
const WEIGHT_TYPES = new Set(
  ("f32 f16 q8 q6 q5 q4 q3h q3 q2 q8_gl q8_log q8_b32t1 q8_b32t2 q6_b64t1 q5_b32t1 q5_b64t1 q4_b16 " +
    "q4_b32t1 q4_b32t1a q4_b32t1b q4_b32t2 q4_b64t1 q3h_b64t1 q3_b32t1 q3_b32t1a q3_b32t1b q2_b32t1 " +
    "q2_b32t1a q2_b32t1b").split(" "),
);

/**
 * Reads the engine's configuration.
 *
 * @throws {FormatError} Naming section and key of what is missing or wrong.
 */
export async function readEngineConfig(
  file: IniFile,
  warnings: Set<string>,
): Promise<EngineConfig> {
  const outer = openConfiguration(file, warnings);
  const names = neededText(outer, { section: "transformer_engine", key: "models" }).split(/[,;]/);
  const name = names.map((one) => one.trim()).find((one) => one !== "") ?? "";
  const section = `model.${name}`;
  if (!file.sections.has(section)) {
    const known = [...file.sections.keys()].filter((one) => one.startsWith("model."));
    throw wrong(
      outer,
      {
        section: "transformer_engine",
        key: "models",
        message: `needs a section [${section}]; there are ${known.join(", ") || "none"}`,
      },
    );
  }
  const globalDir = textOf(outer, { section: "main", key: "global_model_dir" });
  const config: Configuration = {
    ...outer,
    macros: new Map([
      ...outer.macros,
      ["model_name", name],
      ...globalDir === undefined ? [] : [["global_model_dir", globalDir] as const],
    ]),
  };
  checkKeys(config, {
    table: keysOf("engine"),
    skip: (one) => one.startsWith("model.") && one !== section,
  });
  const modelDir = resolve(file, neededText(config, { section, key: "model_dir" }));
  const specKey = ["model_specification_file", "model_spec_file"]
    .find((key) => textOf(config, { section, key }));
  const spec = specKey &&
    await readSpecFile(resolve(file, textOf(config, { section, key: specKey })!));
  const { model_files: files, generation_config: generation = "generation_config.json" } =
    (spec ?? {}) as { model_files?: unknown; generation_config?: unknown };
  const hints = await readGenerationConfig(`${modelDir}/${generation || "generation_config.json"}`);
  const templates = readTemplates(config);
  const template = (...keys: string[]) => {
    const value = keys.map((key) => textOf(config, { section, key })).find((text) => text);
    return value === undefined ? undefined : findPromptTemplate(value, templates);
  };
  const fallback = textOf(config, { section: "main", key: "default_prompt_template" });
  return {
    name,
    path: modelPath(modelDir, files),
    weights: readWeightPolicy(config, section),
    load: { ...readLoadOptions(config, section, spec), ...spec !== undefined && { spec } },
    generate: readGenerateOptions(config, section, hints),
    encoderTemplate: template("encoder_input_template"),
    decoderTemplate: template("decoder_input_template", "prompt_template") ??
      (fallback ? findPromptTemplate(fallback, templates) : undefined),
    templates,
    userTokenId: hints.user_token_id,
    assistantTokenId: hints.assistant_token_id,
    port: numberOf(config, { section: "main", key: "http_port" }, { max: 65535 }) ?? 8080,
  };
}

/** A path of the configuration, which is relative to the file it stands in. */
export function resolve({ name }: IniFile, path: string): string {
  return /^([/\\]|[A-Za-z]:)/.test(path) || /^\w+:/.test(path) ? path : folderOf(name) + path;
}

// A model of one file is opened by its name; shards are found through the folder.
function modelPath(folder: string, files: unknown): string {
  const first = Array.isArray(files) && typeof files[0] === "string" ? files[0] : undefined;
  const plain = folder.replace(/[/\\]+$/, "");
  if (first === undefined) return plain;
  const isAlone = (files as unknown[]).length === 1 || first.endsWith(".index.json");
  const path = `${plain}/${first}`;
  return isAlone && pathKind(path) === "file" ? path : plain;
}

function readLoadOptions(config: Configuration, section: string, spec: unknown): LoadOptions {
  const engine = "transformer_engine";
  for (const [key, { text }] of config.file.sections.get(section)!) {
    const isType = /^(device|host)_(weight|kv_cache)_data_type/.test(key);
    if (!isType || text === "" || WEIGHT_TYPES.has(text.toLowerCase())) continue;
    throw wrong(config, { section, key, message: "must be the name of a number format" });
  }
  const cache = textOf(config, { section, key: "device_kv_cache_data_type" })?.toUpperCase();
  const device = textOf(config, { section: "webgpu", key: "device" });
  const kvFormat = cache === "F32" ? "F32" : cache === "Q8" ? "Q8_0" : "F16";
  if (kvFormat === "F16" && cache && cache !== "F16") {
    config.warnings.add(
      `${config.file.name}, [${section}] device_kv_cache_data_type = ${cache}: F16 is used instead`,
    );
  }
  const context = numberOf(config, { section, key: "max_context_len" });
  const threads = numberOf(config, { section: engine, key: "cpu_threads" }, { max: 256 });
  const sessions = numberOf(config, { section: engine, key: "max_concurrent_queries" }, {
    max: 1024,
  });
  const precision = textOf(config, { section: "webgpu", key: "precision" });
  return {
    kvFormat,
    ...context !== undefined && { contextLength: context <= 16 ? MODEL_DEFAULT_CONTEXT : context },
    ...threads && { threads },
    ...sessions && { sessions },
    ...device && { device: device as NonNullable<LoadOptions["device"]> },
    ...precision && { precision: precision as NonNullable<LoadOptions["precision"]> },
    ...readPlacement(config, section, spec),
  };
}

/** Devices, and layers, embeddings, keys and values on the CPU beside them (spec IF-14, IF-18, IF-19). */
function readPlacement(config: Configuration, section: string, spec: unknown): LoadOptions {
  const engine = "transformer_engine";
  const devices = textOf(config, { section, key: "devices" }) ||
    textOf(config, { section: engine, key: "devices" }) || "0";
  const onCpu = layersOnCpu(config, spec);
  const hostKvPercent = numberOf(config, { section, key: "host_kv_cache_percent" }, { max: 100 });
  const isAlone = devices.trim() === "0";
  const placement = onCpu > 0
    ? `wasm=${onCpu};${isAlone ? "gpu" : devices}`
    : isAlone
    ? undefined
    : devices;
  if (placement === undefined && !hostKvPercent) return {};
  try {
    parseGroups(placement ?? devices);
  } catch (error) {
    throw wrong(config, { section, key: "devices", message: (error as Error).message });
  }
  const isOnHost = textOf(config, { section, key: "be_host_embeddings" });
  return {
    ...placement !== undefined && { placement },
    ...hostKvPercent && { hostKvPercent },
    ...isOnHost && /^(true|yes|1)$/i.test(isOnHost) && { hostEmbeddings: true },
  };
}

interface InferflowSpec {
  readonly network_structure?: { readonly type?: unknown };
}

/** Of an encoder those that are said of encoders; an encoder-decoder has as many of either. */
function layersOnCpu(config: Configuration, spec: unknown): number {
  const section = "transformer_engine";
  const layersOf = (key: string) => numberOf(config, { section, key }, { max: 2 ** 16 });
  const all = layersOf("cpu_layer_count") ?? 0;
  const [ofEncoder = all, ofDecoder = all] = ["encoder", "decoder"]
    .map((part) => layersOf(`${part}_cpu_layer_count`));
  const { type } = (spec as InferflowSpec | undefined)?.network_structure ?? {};
  const { isEncoder, hasSource } = halvesOf(type);
  if (isEncoder) return ofEncoder;
  if (hasSource && ofEncoder !== ofDecoder) {
    config.warnings.add(
      `${config.file.name}, [${section}] encoder_cpu_layer_count = ${ofEncoder}: ` +
        `an encoder-decoder has as many layers of either on the CPU, here ${ofDecoder}`,
    );
  }
  return ofDecoder;
}

interface GenerationHints {
  readonly user_token_id?: number;
  readonly assistant_token_id?: number;
  readonly max_new_tokens?: number;
  readonly temperature?: number;
  readonly top_k?: number;
  readonly top_p?: number;
  readonly repetition_penalty?: number;
}

async function readGenerationConfig(path: string): Promise<GenerationHints> {
  if (pathKind(path) !== "file") return {};
  const json = asObject(parseJson(await readTextFile(path), { file: path })) ?? {};
  const numbers = Object.entries(json).filter(([, value]) => typeof value === "number");
  return Object.fromEntries(numbers);
}

function readGenerateOptions(
  config: Configuration,
  section: string,
  hints: GenerationHints,
): GenerateOptions {
  const given = textOf(config, { section, key: "decoding_strategy" });
  const { top_p, top_k, temperature, repetition_penalty: penalty } = hints;
  const options = {
    strategy: given
      ? parseStrategy(
        given,
        () => wrong(config, { section, key: "decoding_strategy", message: "is no JSON object" }),
      )
      : {
        name: "sample.std",
        ...top_p !== undefined && { top_p },
        ...top_k !== undefined && { max_k: top_k },
      },
    ...temperature !== undefined && { temperature },
    ...penalty !== undefined && { repeatPenalty: penalty },
  };
  try {
    resolveOptions(options);
  } catch (error) {
    throw wrong(config, { section, key: "decoding_strategy", message: (error as Error).message });
  }
  return {
    ...options,
    ...hints.max_new_tokens !== undefined && { maxTokens: hints.max_new_tokens },
    onContextFull: "stop",
  };
}

/** A name, or a record with one. */
function parseStrategy(text: string, fail: () => Error): NamedEntry {
  if (!text.trimStart().startsWith("{")) return text.trim();
  try {
    return JSON.parse(text) as NamedEntry;
  } catch {
    throw fail();
  }
}

function readTemplates(config: Configuration): Record<string, string> {
  const section = "prompt_templates";
  const names = numbered(config, section, {
    count: "prompt_template_count",
    item: "prompt_template",
  });
  return Object.fromEntries(names.map((name) => {
    const own = `prompt_template.${name}`;
    if (!config.file.sections.has(own)) {
      throw new FormatError(`names ${name}, and there is no section [${own}]`, {
        file: config.file.name,
        place: `[${section}]`,
      });
    }
    const text = numbered(config, own, { count: "line_count", item: "line" }).join("\n");
    if (!/\{_?(query|question)\}/.test(text)) {
      throw new FormatError("has no place for the query", {
        file: config.file.name,
        place: `[${own}]`,
        remedy: "Put {query} or {_query} into it",
      });
    }
    return [name, text];
  }));
}
