// adapter_config.json of Hugging Face's PEFT (0.21): which modules are adapted, with which rank, and how much. What it
// asks for and is not built is refused by name: an adapter that is applied in part is another model.

import { NUMBER } from "../../record.ts";
import { FormatError } from "../../errors.ts";
import { checkFields, type FieldTable, rows } from "../../formats/field_table.ts";
import type { MetadataValue } from "../../formats/source.ts";
import { pythonPattern } from "./python_pattern.ts";

const CONFIG = "adapter_config.json";
const OTHERS = "Config and weights are of different adapters: fetch the folder again";

const origin = { harmless: "where it came from" };
const training = { harmless: "for training" };

/** Every field of PEFT's LoraConfig. */
export const ADAPTER_FIELDS: FieldTable = {
  peft_type: { only: ["LORA"] },
  ...rows("read", "r", "lora_alpha", "rank_pattern", "alpha_pattern", "use_rslora"),
  ...rows("read", "target_modules", "exclude_modules", "layers_to_transform", "layers_pattern"),
  bias: { only: ["none"] },
  // The others change the model's own weights when the adapter is loaded.
  init_lora_weights: { only: [true, false, "gaussian", "orthogonal", "eva"] },
  ...rows({ only: [false] }, "use_dora", "use_qalora", "lora_bias", "use_bdlora"),
  ...rows({ only: [false] }, "ensure_weight_tying"),
  ...rows({ only: [] }, "modules_to_save", "layer_replication", "trainable_token_indices"),
  ...rows({ only: [] }, "target_parameters", "alora_invocation_tokens", "arrow_config"),
  ...rows({ only: [] }, "kasa_config", "monteclora_config"),
  fan_in_fan_out: { harmless: "the model's spec knows how its weights lie" },
  qalora_group_size: { harmless: "for use_qalora" },
  ...rows(origin, "base_model_name_or_path", "revision", "peft_version", "auto_mapping"),
  ...rows(origin, "task_type"),
  ...rows(training, "inference_mode", "lora_dropout", "loftq_config", "eva_config", "corda_config"),
  ...rows(training, "lora_ga_config", "velora_config", "megatron_config", "megatron_core"),
  runtime_config: { harmless: "where tensors lie while PEFT runs" },
};

/** What a config says of the modules that its tensors are for. */
export interface PeftConfig {
  /** alpha / r, or what else the config makes of the two. */
  factorOf(module: string, rank: number): number;
  /** @throws {FormatError} If tensors and config speak of different modules. */
  checkModules(modules: readonly string[]): void;
  readonly warnings: readonly string[];
}

type Json = { readonly [key: string]: MetadataValue };

/**
 * Reads a config.
 *
 * @throws {UnsupportedError} If a field asks for what is not built.
 */
export function readPeftConfig(json: Json, file: string): PeftConfig {
  const warnings = checkFields(json, ADAPTER_FIELDS, { file, place: CONFIG });
  const ranks = patternValues(json, "rank_pattern", file);
  const alphas = patternValues(json, "alpha_pattern", file);
  const isTarget = targetsOf(json, file);
  const fail = (key: string, message: string, remedy?: string): never => {
    throw new FormatError(message, { file, place: `${CONFIG}, ${key}`, remedy });
  };
  return {
    warnings,
    factorOf(module, rank) {
      const stated = ranks(module) ?? json.r;
      if (typeof stated === "number" && stated !== rank) {
        fail("r", `is ${stated}, and the tensors of ${module} have rank ${rank}`, OTHERS);
      }
      const alpha = alphas(module) ?? json.lora_alpha;
      if (!NUMBER.accepts(alpha)) {
        return fail("lora_alpha", "must be a number");
      }
      return alpha / (json.use_rslora === true ? Math.sqrt(rank) : rank);
    },
    checkModules(modules) {
      const odd = modules.find((module) => !isTarget(module));
      if (odd !== undefined) {
        fail("target_modules", `leaves ${odd} out, and there are tensors for it`, OTHERS);
      }
      // Where some are taken out again, none may be left of a target.
      const isNarrowed =
        [json.exclude_modules ?? [], json.layers_to_transform ?? []].flat().length > 0;
      if (isNarrowed || !Array.isArray(json.target_modules)) return;
      for (const target of json.target_modules as readonly MetadataValue[]) {
        if (modules.some((module) => isEnd(module, target))) continue;
        fail("target_modules", `names ${target}, and there are no tensors for it`, OTHERS);
      }
    },
  };
}

function isEnd(module: string, name: MetadataValue): boolean {
  return module === name || module.endsWith(`.${name}`);
}

/** A pattern is that of the end of a module's name; the first that fits counts (get_pattern_key). */
function patternValues(
  json: Json,
  key: string,
  file: string,
): (module: string) => number | undefined {
  const at = { file, place: `${CONFIG}, ${key}` };
  const patterns = Object.entries(json[key] ?? {}).map(([pattern, value]) => {
    if (!NUMBER.accepts(value)) {
      throw new FormatError(`must be numbers by module, and ${pattern} is ${value}`, at);
    }
    return { fits: pythonPattern(`(.*\\.)?(${pattern})`, at), value };
  });
  return (module) => patterns.find(({ fits }) => fits(module))?.value;
}

/** Which modules PEFT adapts by this config (check_target_module_exists). */
function targetsOf(json: Json, file: string): (module: string) => boolean {
  const place = (key: string) => ({ file, place: `${CONFIG}, ${key}` });
  const names = (key: string): ((module: string) => boolean) | undefined => {
    const value = json[key];
    if (typeof value === "string" && value !== "") return pythonPattern(value, place(key));
    return Array.isArray(value) && value.length > 0
      ? (module) => value.some((name) => isEnd(module, name))
      : undefined;
  };
  const isExcluded = names("exclude_modules") ?? (() => false);
  // What is absent or a word for all leaves it to the tensors.
  const isNamed = json.target_modules === "all-linear" ? undefined : names("target_modules");
  const isInLayer = layersOf(json, file);
  return (module) => {
    if (isExcluded(module)) return false;
    if (!isNamed || !isNamed(module)) return isNamed === undefined;
    if (!Array.isArray(json.target_modules) || json.target_modules.includes(module)) return true;
    return isInLayer(module);
  };
}

/** Of modules that are named by their ends, those in the layers that are to be changed. */
function layersOf(json: Json, file: string): (module: string) => boolean {
  const layers = [json.layers_to_transform ?? []].flat();
  if (layers.length === 0) return () => true;
  const at = { file, place: `${CONFIG}, layers_pattern` };
  const patterns = [json.layers_pattern ?? []].flat()
    .filter((one): one is string => typeof one === "string" && one !== "")
    .map((pattern) => pythonPattern(`(.*\\.)?${pattern}`, at));
  return (module) => {
    const parts = module.split(".");
    const isNumber = (i: number) => i < parts.length - 1 && /^\d+$/.test(parts[i]!);
    const places = parts.map((_, i) => i).filter(isNumber);
    // Behind what the pattern fits, or behind two parts at least.
    const found = patterns.length === 0 ? places.find((i) => i > 1) : patterns
      .map((fits) => places.find((i) => fits(parts.slice(0, i).join("."))))
      .find((i) => i !== undefined);
    return found !== undefined && layers.includes(Number(parts[found]));
  };
}
