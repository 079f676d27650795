// Checks a spec file as a whole, for whoever writes one: under every convention that it matches, and with
// each of its cases, so that a fault in a branch that no file at hand takes is found too; each is built.

import { FormatError } from "../errors.ts";
import { type Convention, type ResolvedSpec, resolveSpec } from "./spec.ts";
import { tryBuild } from "./spec_trial.ts";
import names from "./specs/names.json" with { type: "json" };

/** What was checked. */
export interface SpecReport {
  readonly name: string;
  readonly conventions: readonly Convention[];
  /** Number of cases that were tried, over all conventions. */
  readonly cases: number;
}

/**
 * Checks the content of a spec file, and builds small models of it.
 *
 * @throws {FormatError} Naming the key, what stood there and what is allowed.
 * @throws {UnsupportedError} If its blocks do not go together.
 */
export async function checkSpec(json: unknown, file: string): Promise<SpecReport> {
  const all: readonly Convention[] = ["huggingface", "gguf"];
  const resolve = (convention: Convention) =>
    resolveSpec(json, { common: names, context: { convention, file } });
  const { spec } = resolve("huggingface");
  const conventions = all.filter((convention) => spec.matches[convention].length > 0);
  if (conventions.length === 0) {
    throw new FormatError("names no architecture of any container", { file, place: "matches" });
  }
  let cases = 0;
  for (const convention of conventions) cases += await tryCases(resolve(convention), file);
  return { name: spec.name, conventions, cases };
}

async function tryCases(resolved: ResolvedSpec, file: string): Promise<number> {
  const cases = resolved.spec.cases ?? [];
  for (const hasAll of [true, false]) await tryBuild(resolved, { has: () => hasAll, file });
  for (const { when = {}, given = [], absent = [], stored = [] } of cases) {
    const has = (role: string) => stored.includes(role);
    await tryBuild(resolved, { when, given, absent, has, file });
  }
  return cases.length;
}
