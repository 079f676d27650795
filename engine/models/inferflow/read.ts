// Checks the content of model_spec.json by keys.json: every key of it [§4.2], what its value may be (a list is of
// words) and what becomes of it here. So nothing is read that is not in it, and nothing in it is forgotten: keys that
// are not there are named in one warning.

import { OBJECT } from "../../record.ts";
import { FormatError } from "../../errors.ts";
import { anything, flag, list, number, oneOf, type Rule, table, text } from "../check.ts";
import keys from "./keys.json" with { type: "json" };

interface SpecKey {
  readonly rule: string | readonly string[];
  /** How it is honoured, or why it changes nothing. */
  readonly use: string;
}

/** Keys of `network_structure`. */
export const NETWORK_KEYS = keys.network;

const RULES: Readonly<Record<string, Rule<unknown>>> = {
  ...{ anything, flag, number, text, list: list(text), table: table(text) },
};

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
  const top = readKeys(json, keys.top, { file, path: "", unknown });
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
  if (!OBJECT.accepts(value)) {
    throw new FormatError("must be an object", { file, place: path || "the file" });
  }
  const read: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value)) {
    const place = path === "" ? name : `${path}.${name}`;
    if (!Object.hasOwn(keys, name)) unknown.push(place);
    else if (item !== null) {
      const { rule } = keys[name]!;
      const check = typeof rule === "string" ? RULES[rule]! : oneOf(...rule);
      read[name] = check(item, { file, path: place });
    }
  }
  return read;
}
