// Look-up in a model file's metadata by dotted path. GGUF keys hold dots themselves and are flat;
// config.json nests. A path is tried as one key first and then step by step, so one spelling table
// serves both. Groups of flat GGUF keys (`llama.rope.scaling.*`) read as one record for the same reason.

import type { MetadataValue } from "../formats/source.ts";
import { asObject } from "../formats/strict_json.ts";

/** The value at a path; undefined if there is none. */
export function metadataAt(
  metadata: ReadonlyMap<string, MetadataValue>,
  path: string,
): MetadataValue | undefined {
  const direct = metadata.get(path);
  if (direct !== undefined) return direct;
  return groupAt(metadata, path) ?? nestedAt(metadata, path);
}

function nestedAt(
  metadata: ReadonlyMap<string, MetadataValue>,
  path: string,
): MetadataValue | undefined {
  const [first, ...rest] = path.split(".");
  let value = metadata.get(first!);
  for (const key of rest) {
    const record = asObject(value);
    if (!record || !Object.hasOwn(record, key)) return undefined;
    value = record[key];
  }
  return value;
}

function groupAt(
  metadata: ReadonlyMap<string, MetadataValue>,
  path: string,
): Record<string, MetadataValue> | undefined {
  const prefix = `${path}.`;
  // By keys: to look at a value may take decoding it.
  const keys = [...metadata.keys()].filter((key) => key.startsWith(prefix));
  if (keys.length === 0) return undefined;
  return Object.fromEntries(keys.map((key) => [key.slice(prefix.length), metadata.get(key)!]));
}
