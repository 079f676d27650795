// Keys of config.json, or of a GGUF file, that nothing here reads: each could ask for something that is then not done,
// so they are named once. Keys that change no result (dropout, token ids, versions) are
// listed in specs/names.json; those whose value is null, false, 0 or empty ask for nothing.

import { patternOf } from "../formats/field_table.ts";
import { unknownFileKeys } from "../formats/gguf/file_keys.ts";
import type { WeightFile } from "../formats/source.ts";
import { asObject } from "../formats/strict_json.ts";
import { metadataAt } from "./metadata.ts";
import { unreadRopeFields } from "./rope.ts";
import type { ResolvedSpec } from "./spec.ts";

/** One sentence, or none. */
export function unknownKeysWarning(
  file: WeightFile,
  { resolved, architecture }: { readonly resolved: ResolvedSpec; readonly architecture: string },
): string[] {
  const unknown = unknownKeys(file, { spec: resolved, architecture });
  if (unknown.length === 0) return [];
  const shown = unknown.slice(0, 5).join(", ") + (unknown.length > 5 ? ", ..." : "");
  return [
    unknown.length === 1
      ? `the file's key ${shown} is not understood and has no effect`
      : `${unknown.length} keys of the file are not understood and have no effect: ${shown}`,
  ];
}

/**
 * Keys of a file that ask for something and that a spec does not speak of.
 *
 * @throws {UnsupportedError} If a key of a GGUF file beside the architecture's has a value that is not built.
 */
export function unknownKeys(
  { metadata, name }: WeightFile,
  { spec: { names, convention }, architecture }: {
    readonly spec: ResolvedSpec;
    readonly architecture: string;
  },
): string[] {
  const named = (key: string) => key.replace("{arch}", architecture);
  const known = [...Object.values(names.hyperparameters).flat(), ...Object.keys(names.expected)]
    .map(named);
  const harmless = names.harmless.map(([pattern]) => patternOf(named(pattern)));
  const others = convention === "gguf"
    ? unknownFileKeys(metadata, { file: name, own: [`${architecture}.`, "tokenizer."] })
    : [];
  // By keys: to look at a value may take decoding a vocabulary.
  const unknown = [...metadata.keys()].filter((key) =>
    (convention === "huggingface" || key.startsWith(`${architecture}.`) || others.includes(key)) &&
    asks(metadata.get(key)) &&
    !known.some((path) =>
      path === key || path.startsWith(`${key}.`) || key.startsWith(`${path}.`)
    ) &&
    !harmless.some((pattern) => pattern.test(key))
  );
  const records = ["ropeScaling", "localRopeScaling"].flatMap((name) =>
    names.hyperparameters[name] ?? []
  ).map(named);
  return [...unknown, ...records.flatMap((path) => unknownFields(metadata, path, records))];
}

/** Fields of the record of a rotary rule that none of the rules reads. */
function unknownFields(
  metadata: WeightFile["metadata"],
  path: string,
  records: readonly string[],
): string[] {
  const values = asObject(metadataAt(metadata, path)) ?? {};
  return unreadRopeFields(values)
    .filter((field) => asks(values[field]))
    .map((field) => `${path}.${field}`)
    .filter((field) => !records.includes(field));
}

function asks(value: unknown): boolean {
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    return (value as { length?: number }).length !== 0;
  }
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return value !== null && value !== false && value !== 0 && value !== "";
}
