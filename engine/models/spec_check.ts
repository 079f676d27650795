// Checks a spec file as a whole, for whoever writes one: under every convention that it matches, and with
// each of its cases, so that a fault in a branch that no file at hand takes is found too.

import { FormatError } from "../errors.ts";
import type { FoundHyperparameters } from "./hparam_fields.ts";
import { type Convention, type ResolvedSpec, resolveSpec } from "./spec.ts";
import names from "./specs/names.json" with { type: "json" };

/** What was checked. */
export interface SpecReport {
  readonly name: string;
  readonly conventions: readonly Convention[];
  /** Number of cases that were tried, over all conventions. */
  readonly cases: number;
}

/**
 * Checks the content of a spec file.
 *
 * @throws {FormatError} Naming the key, what stood there and what is allowed.
 */
export function checkSpec(json: unknown, file: string): SpecReport {
  const all: readonly Convention[] = ["huggingface", "gguf"];
  const resolve = (convention: Convention) => resolveSpec(json, names, { convention, file });
  const { spec } = resolve("huggingface");
  const conventions = all.filter((convention) => spec.matches[convention].length > 0);
  if (conventions.length === 0) {
    throw new FormatError("names no architecture of any container", { file, place: "matches" });
  }
  const cases = conventions.map((convention) => tryCases(resolve(convention)));
  return { name: spec.name, conventions, cases: cases.reduce((a, b) => a + b, 0) };
}

function tryCases({ spec, specialize }: ResolvedSpec): number {
  const cases = spec.cases ?? [];
  for (const { when = {}, given = [], stored = [] } of cases) {
    const found = { ...Object.fromEntries(given.map((name) => [name, 1])), ...when };
    specialize(found as FoundHyperparameters, (role) => stored.includes(role));
  }
  return cases.length;
}
