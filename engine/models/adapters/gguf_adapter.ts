// An adapter in GGUF, as llama.cpp's converter writes it: `general.type` is "adapter", `adapter.type` "lora",
// `adapter.lora.alpha` the alpha, and each matrix `x` of the model has `x.lora_a` and `x.lora_b`. An alpha of 0
// means that the scale is all there is.

import { FormatError } from "../../errors.ts";
import { checkFields, type FieldTable, rows } from "../../formats/field_table.ts";
import type { WeightFile } from "../../formats/source.ts";
import { type AdapterContent, type Halves, joinPairs, refuseTensor } from "./pairs.ts";

/** Keys that begin with `adapter.`. */
const FIELDS: FieldTable = {
  ...rows("read", "adapter.type", "adapter.lora.alpha"),
  "adapter.lora.task_name": { harmless: "a name" },
  "adapter.lora.prompt_prefix": { idle: "put it in front of prompts yourself" },
  // It would count from these tokens of a text on.
  "adapter.alora.invocation_tokens": { only: [] },
};

/** The one matrix whose A stands by row: [vocabulary, r]. */
const EMBEDDING = "token_embd.weight";

/** @throws {FormatError | UnsupportedError} See `openAdapter`. */
export function readGgufAdapter(file: WeightFile): AdapterContent {
  const { metadata, name } = file;
  expect(file, "general.type", "adapter");
  expect(file, "adapter.type", "lora");
  const own = [...metadata].filter(([key]) => key.startsWith("adapter."));
  const warnings = checkFields(Object.fromEntries(own), FIELDS, { file: name, place: "metadata" });
  const alpha = metadata.get("adapter.lora.alpha") ?? 0;
  if (typeof alpha !== "number" || !Number.isFinite(alpha)) {
    throw new FormatError("must be a number", { file: name, place: "adapter.lora.alpha" });
  }
  const halves = new Map<string, Halves>();
  for (const tensor of file.tensors.values()) {
    const [, base, side] = /^(.*)\.lora_([ab])$/.exec(tensor.name) ?? [];
    if (base === undefined) {
      refuseTensor(name, { tensor: tensor.name, what: "what is no lora_a or lora_b" });
    }
    const half = halves.get(base!) ?? { isTable: base === EMBEDDING };
    half[side === "a" ? "down" : "up"] = tensor;
    halves.set(base!, half);
  }
  const architecture = metadata.get("general.architecture");
  return {
    convention: "gguf",
    architecture: typeof architecture === "string" ? architecture : undefined,
    pairs: joinPairs(halves, (_, rank) => alpha === 0 ? 1 : alpha / rank),
    warnings,
  };
}

function expect({ metadata, name }: WeightFile, key: string, wanted: string): void {
  const value = metadata.get(key);
  if (value === wanted) return;
  throw new FormatError(`is ${JSON.stringify(value) ?? "absent"} where "${wanted}" is needed`, {
    file: name,
    place: key,
    remedy: "Give an adapter, as llama.cpp's convert_lora_to_gguf.py writes it",
  });
}
