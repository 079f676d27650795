// An adapter of Hugging Face's PEFT: adapter_config.json and adapter_model.safetensors (or .bin) with tensors
// `base_model.model.MODULE.lora_A.weight` [r, K] and `….lora_B.weight` [N, r], or `lora_embedding_A` [r, vocabulary]
// and `lora_embedding_B` [N, r]. Their orientation does not depend on
// how the model stores W (`fan_in_fan_out` is about that, and the model's spec knows it). Ranks and alphas may
// differ by module; r is taken from the tensors and compared with what the config says.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { MetadataValue, WeightFile } from "../../formats/source.ts";
import { parseStrictJson } from "../../formats/strict_json.ts";
import { transposeTensor } from "../views/transpose.ts";
import { type AdapterContent, type Halves, joinPairs, refuseTensor } from "./pairs.ts";

const CONFIG = "adapter_config.json";
const PREFIX = /^base_model\.model\./;
const HALF = /^(.*)\.lora_([AB])(?:\.[^.]+)?\.weight$/;
/** Of an embedding; A is [r, vocabulary] there. */
const TABLE = /^(.*)\.lora_embedding_([AB])(?:\.[^.]+)?$/;

/** Settings that change what is computed, and the only values that are built. */
const EXPECTED: Readonly<Record<string, readonly unknown[]>> = {
  peft_type: ["LORA"],
  use_dora: [false],
  bias: ["none"],
  modules_to_save: [],
  layer_replication: [],
  trainable_token_indices: [],
  target_parameters: [],
  use_qalora: [false],
  alora_invocation_tokens: [],
  lora_bias: [false],
};

type Config = Readonly<Record<string, MetadataValue>>;

/** @throws {FormatError | UnsupportedError} See `openAdapter`. */
export async function readPeftAdapter(file: WeightFile): Promise<AdapterContent> {
  const config = await readConfig(file);
  for (const [key, allowed] of Object.entries(EXPECTED)) {
    const value = config[key];
    const isEmpty = value === undefined || value === null ||
      (Array.isArray(value) && value.length === 0);
    if (isEmpty || allowed.includes(value)) continue;
    const wanted = ["absent", ...allowed.map((one) => JSON.stringify(one))].join(" or ");
    throw new UnsupportedError(`is ${JSON.stringify(value)}, and only ${wanted} is built`, {
      file: file.name,
      place: `${CONFIG}, ${key}`,
    });
  }
  const halves = new Map<string, Halves>();
  for (const tensor of file.tensors.values()) {
    const table = TABLE.exec(tensor.name);
    const [, module, side] = table ?? HALF.exec(tensor.name) ?? [];
    if (module === undefined) refuseTensor(file.name, tensor.name, describe(tensor.name));
    const base = `${module!.replace(PREFIX, "")}.weight`;
    const half = halves.get(base) ?? { isTable: table !== null };
    if (side === "B") half.up = tensor;
    else half.down = table ? transposeTensor(tensor) : tensor;
    halves.set(base, half);
  }
  checkTargets(config, [...halves.keys()], file.name);
  return {
    convention: "huggingface",
    pairs: joinPairs(halves, (name, rank) => factorOf(config, name, { rank, file: file.name })),
  };
}

async function readConfig(file: WeightFile): Promise<Config> {
  const text = await file.readText?.(CONFIG);
  if (text === undefined) {
    throw new FormatError(`has no ${CONFIG} beside it`, {
      file: file.name,
      remedy: "Give the folder of a PEFT adapter, or a GGUF adapter",
    });
  }
  const config = parseStrictJson(new TextEncoder().encode(text), `${file.name}, ${CONFIG}`);
  if (typeof config !== "object" || config === null || Array.isArray(config)) {
    throw new FormatError("is not a JSON object", { file: file.name, place: CONFIG });
  }
  return config as Config;
}

function describe(name: string): string {
  if (name.includes("lora_magnitude_vector")) return "an adapter with magnitudes (DoRA)";
  return "an adapter that replaces whole tensors";
}

// A pattern is the end of a module's name, as PEFT reads it; the first that fits counts.
function patternValue(config: Config, key: string, module: string): number | undefined {
  const patterns = config[key];
  if (typeof patterns !== "object" || patterns === null) return undefined;
  for (const [pattern, value] of Object.entries(patterns)) {
    const isEnd = module === pattern || module.endsWith(`.${pattern}`);
    if ((isEnd || matches(pattern, module)) && typeof value === "number") return value;
  }
  return undefined;
}

function matches(pattern: string, module: string): boolean {
  // Patterns from strangers: only those that cannot take forever are run.
  if (!/^[\w.\\^$|\d[\]-]*$/.test(pattern)) return false;
  try {
    return new RegExp(`(?:^|\\.)(?:${pattern})$`).test(module);
  } catch {
    return false;
  }
}

function factorOf(
  config: Config,
  name: string,
  { rank, file }: { readonly rank: number; readonly file: string },
): number {
  const module = name.replace(/\.weight$/, "");
  const said = patternValue(config, "rank_pattern", module) ?? config.r;
  if (typeof said === "number" && said !== rank) {
    throw new FormatError(`is ${said}, and the tensors of ${module} have rank ${rank}`, {
      file,
      place: `${CONFIG}, r`,
      remedy: "Config and weights are of different adapters: fetch the folder again",
    });
  }
  const alpha = patternValue(config, "alpha_pattern", module) ?? config.lora_alpha;
  if (typeof alpha !== "number" || !Number.isFinite(alpha)) {
    throw new FormatError("must be a number", { file, place: `${CONFIG}, lora_alpha` });
  }
  return alpha / (config.use_rslora === true ? Math.sqrt(rank) : rank);
}

function checkTargets(config: Config, names: readonly string[], file: string): void {
  const targets = config.target_modules;
  if (!Array.isArray(targets)) return; // a pattern of PEFT's, or none: the tensors say it
  const modules = names.map((name) => name.replace(/\.weight$/, ""));
  for (const target of targets as readonly MetadataValue[]) {
    if (typeof target !== "string") continue;
    if (modules.some((module) => module === target || module.endsWith(`.${target}`))) continue;
    throw new FormatError(`names ${target}, and there are no tensors for it`, {
      file,
      place: `${CONFIG}, target_modules`,
      remedy: "Config and weights are of different adapters: fetch the folder again",
    });
  }
}
