// Keys of a GGUF file that are neither its architecture's nor its text's, by the specification (ggml's docs/gguf.md)
// and llama.cpp's writer, and what becomes of each.

import { checkFields, type FieldTable, rows, useOf } from "../field_table.ts";
import type { MetadataValue } from "../source.ts";
import { POLICY_KEY } from "../stored_formats.ts";

const maker = { harmless: "it says who made the file, of what and for whom" };
const choice = { harmless: "how tokens are chosen is the caller's option" };
const rounding = { harmless: "it says how weights were rounded; each tensor says its format" };

/** Keys of a file that holds a model. */
export const GGUF_FILE_FIELDS: FieldTable = {
  ...rows("read", "general.architecture", "general.alignment", "general.name", "general.license"),
  ...rows("read", "split.no", "split.count", "split.tensors.count", POLICY_KEY),
  "general.type": { only: ["model"] },
  // Blocks of other versions have other layouts.
  "general.quantization_version": { only: [2] },
  ...rows(rounding, "general.file_type", "quantize.imatrix.*"),
  ...rows(choice, "general.sampling.*"),
  ...rows(maker, "general.author", "general.version", "general.organization", "general.finetune"),
  ...rows(maker, "general.basename", "general.description", "general.quantized_by"),
  ...rows(maker, "general.size_label", "general.license.*", "general.url", "general.doi"),
  ...rows(maker, "general.uuid", "general.repo_url", "general.source.*", "general.base_model.*"),
  ...rows(maker, "general.dataset.*", "general.tags", "general.languages", "general.datasets"),
  ...rows(maker, "general.source_url", "general.source_hf_repo", "general.parameter_count"),
};

/**
 * Keys of a model's file that ask for something and are in no table; those of `own` have tables of their own.
 *
 * @throws {UnsupportedError} If a key has a value that is not built.
 */
export function unknownFileKeys(
  metadata: ReadonlyMap<string, MetadataValue>,
  { file, own }: { readonly file: string; readonly own: readonly string[] },
): string[] {
  const keys = [...metadata.keys()].filter((key) => !own.some((start) => key.startsWith(start)));
  const limited = keys.filter((key) => typeof useOf(GGUF_FILE_FIELDS, key) === "object");
  const values = Object.fromEntries(limited.map((key) => [key, metadata.get(key)!]));
  checkFields(values, GGUF_FILE_FIELDS, { file, place: "metadata" });
  return keys.filter((key) => useOf(GGUF_FILE_FIELDS, key) === undefined);
}
