// An adapter of Hugging Face's PEFT: adapter_config.json and adapter_model.safetensors (or .bin) with tensors
// `base_model.model.MODULE.lora_A.weight` [r, K] and `….lora_B.weight` [N, r], or `lora_embedding_A` [r, vocabulary]
// and `lora_embedding_B` [N, r]. Their orientation does not depend on
// how the model stores W (`fan_in_fan_out` is about that, and the model's spec knows it). Ranks and alphas may
// differ by module; r is taken from the tensors and compared with what the config says (peft_config.ts).

import { FormatError } from "../../errors.ts";
import type { WeightFile } from "../../formats/source.ts";
import { asObject, parseStrictJson } from "../../formats/strict_json.ts";
import { transposeTensor } from "../derived_tensors/transpose.ts";
import { type AdapterContent, type Halves, joinPairs, refuseTensor } from "./pairs.ts";
import { readPeftConfig } from "./peft_config.ts";

const CONFIG = "adapter_config.json";
const PREFIX = /^base_model\.model\./;
const HALF = /^(.*)\.lora_([AB])(?:\.[^.]+)?\.weight$/;
/** Of an embedding; A is [r, vocabulary] there. */
const TABLE = /^(.*)\.lora_embedding_([AB])(?:\.[^.]+)?$/;

/** @throws {FormatError | UnsupportedError} See `openAdapter`. */
export async function readPeftAdapter(file: WeightFile): Promise<AdapterContent> {
  const config = readPeftConfig(await readConfig(file), file.name);
  const halves = new Map<string, Halves>();
  for (const tensor of file.tensors.values()) {
    const table = TABLE.exec(tensor.name);
    const [, module, side] = table ?? HALF.exec(tensor.name) ?? [];
    if (module === undefined) {
      refuseTensor(file.name, { tensor: tensor.name, what: describe(tensor.name) });
    }
    const base = `${module!.replace(PREFIX, "")}.weight`;
    const half = halves.get(base) ?? { isTable: table !== null };
    if (side === "B") half.up = tensor;
    else half.down = table ? transposeTensor(tensor) : tensor;
    halves.set(base, half);
  }
  const moduleOf = (name: string) => name.replace(/\.weight$/, "");
  config.checkModules([...halves.keys()].map(moduleOf));
  return {
    convention: "huggingface",
    pairs: joinPairs(halves, (name, rank) => config.factorOf(moduleOf(name), rank)),
    warnings: config.warnings,
  };
}

async function readConfig(file: WeightFile) {
  const text = await file.readText?.(CONFIG);
  if (text === undefined) {
    throw new FormatError(`has no ${CONFIG} beside it`, {
      file: file.name,
      remedy: "Give the folder of a PEFT adapter, or a GGUF adapter",
    });
  }
  const config = asObject(
    parseStrictJson(new TextEncoder().encode(text), `${file.name}, ${CONFIG}`),
  );
  if (config) return config;
  throw new FormatError("is not a JSON object", { file: file.name, place: CONFIG });
}

function describe(name: string): string {
  if (name.includes("lora_magnitude_vector")) return "an adapter with magnitudes (DoRA)";
  return "an adapter that replaces whole tensors";
}
