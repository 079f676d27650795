// Checks the content of model_spec.json: every value by the table of keys; keys that are not in it are named in one
// warning.

import { FormatError } from "../../errors.ts";
import { NETWORK_KEYS, type SpecKey, TOP_KEYS } from "./keys.ts";

/** A checked description. */
export interface InferflowSpec {
  readonly top: Readonly<Record<string, unknown>>;
  readonly network: Readonly<Record<string, unknown>>;
  readonly warnings: readonly string[];
}

/**
 * Checks a description by the tables of keys.
 *
 * @throws {FormatError} Naming the key, what is allowed and what stood there.
 */
export function readInferflowSpec(json: unknown, file: string): InferflowSpec {
  const unknown: string[] = [];
  const top = readKeys(json, TOP_KEYS, { file, path: "", unknown });
  const network = readKeys(top.network_structure, NETWORK_KEYS, {
    file,
    path: "network_structure",
    unknown,
  });
  if (network.type === undefined) {
    throw new FormatError("is missing", { file, place: "network_structure.type" });
  }
  const warnings = unknown.length === 0
    ? []
    : [`${file}: keys that are not known change nothing: ${unknown.join(", ")}`];
  return { top, network, warnings };
}

function readKeys(
  value: unknown,
  keys: Readonly<Record<string, SpecKey>>,
  { file, path, unknown }: { file: string; path: string; unknown: string[] },
): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new FormatError("must be an object", { file, place: path || "the file" });
  }
  const read: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value)) {
    const place = path === "" ? name : `${path}.${name}`;
    if (!Object.hasOwn(keys, name)) unknown.push(place);
    else if (item !== null) read[name] = keys[name]!.rule(item, { file, path: place });
  }
  return read;
}
