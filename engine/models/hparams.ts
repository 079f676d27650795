// The numbers of one model, read from its file and checked before anything is built on them. Names and
// their spellings come from the spec's data; this file holds what a value may be and what follows when it
// is absent. Nothing is trusted: billions of layers, no heads, or a negative length
// is refused with the key that said so (fixtures: stage "model build").

import { FormatError, UnsupportedError } from "../errors.ts";
import type { WeightFile } from "../formats/source.ts";
import {
  checkField,
  describe,
  type FieldName,
  FIELDS,
  type FoundHyperparameters,
  HYPERPARAMETERS,
  isList,
} from "./hparam_fields.ts";
import { metadataAt } from "./metadata.ts";
import { sizeNames, sizeOf } from "./sizes.ts";
import type { Convention, ExpectedValues, ResolvedSpec } from "./spec.ts";
import { createTensorLookup } from "./tensors.ts";

/** Values after defaults and what follows from others. */
export interface Hyperparameters extends FoundHyperparameters {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  /** Channels of a query and key head, and of a value head. */
  readonly headDim: number;
  readonly valueDim: number;
  readonly feedForward: number;
  readonly vocabulary: number;
  /** Width of the embedding. */
  readonly embeddingDim: number;
  readonly context: number;
  readonly normEpsilon: number;
  /** Leading channels of a head that are rotated. */
  readonly ropeDim: number;
}

/** A spec, and the file's own name of its architecture. */
export interface HyperparameterOptions {
  readonly architecture: string;
  /** Rows of the embedding tensor. */
  readonly vocabulary: number | undefined;
}

/**
 * The spec with the cases that hold for a file.
 *
 * @throws {FormatError} If a hyperparameter is impossible.
 */
export function specializeSpec(
  resolved: ResolvedSpec,
  { file, architecture }: { readonly file: WeightFile; readonly architecture: string },
): ResolvedSpec {
  const found = findHyperparameters(resolved, file, architecture);
  return resolved.specialize(
    found,
    (role, names) => createTensorLookup(file, { names, params: found }).has(role, 0),
  );
}

/**
 * Reads and checks the hyperparameters of a model.
 *
 * @throws {FormatError} Naming the key, its value and what it must be.
 * @throws {UnsupportedError} For values per layer, and for keys that ask for something that is not built.
 */
export function readHyperparameters(
  resolved: ResolvedSpec,
  file: WeightFile,
  { architecture, vocabulary }: HyperparameterOptions,
): Hyperparameters {
  const { spec, names, convention } = specializeSpec(resolved, { file, architecture });
  for (const [key, allowed] of Object.entries(names.expected)) {
    checkExpected(file, key.replace("{arch}", architecture), allowed);
  }
  if (convention === "huggingface") checkRopeRecords(file);
  const found = findHyperparameters({ spec, names }, file, architecture);
  const keyOf = (name: FieldName) =>
    names.hyperparameters[name]?.[0]?.replace("{arch}", architecture) ?? name;
  const { derived = {}, required = [] } = spec;
  return completeHyperparameters(found, { file, keyOf, vocabulary, derived, required, convention });
}

/** What a file says, after defaults. */
function findHyperparameters(
  { spec, names }: Pick<ResolvedSpec, "spec" | "names">,
  file: WeightFile,
  architecture: string,
): FoundHyperparameters {
  const found: Record<string, unknown> = { ...spec.defaults };
  const keysOf = (name: string) => names.hyperparameters[name] ?? [];
  // One key may hold a number for all layers or a list, and then two fields read it.
  const shared = new Set(HYPERPARAMETERS.filter(isListed).flatMap(keysOf));
  const scalar = new Set(HYPERPARAMETERS.filter((name) => !isListed(name)).flatMap(keysOf));
  for (const name of HYPERPARAMETERS) {
    const values = keysOf(name).map((key) => {
      const place = key.replace("{arch}", architecture);
      return { key, place, value: metadataAt(file.metadata, place) };
    });
    // null says that there is none: no window, no cap. What is not there says nothing.
    if (values.some(({ value }) => value === null)) {
      const { none } = FIELDS[name as FieldName] as { none?: number };
      if (none === undefined) delete found[name];
      else found[name] = none;
    }
    for (const { key, place, value } of values) {
      if (value === undefined || value === null) continue;
      const isBoth = shared.has(key) && scalar.has(key);
      if (isBoth && isList(value) !== isListed(name)) continue;
      found[name] = checkField(name as FieldName, value, { file: file.name, place });
      break;
    }
  }
  return found as FoundHyperparameters;
}

function isListed(name: string): boolean {
  const { kind } = FIELDS[name as FieldName];
  return kind === "words" || kind === "indices";
}

/** Whether the value of a key is built. */
export function isExpected(value: unknown, allowed: ExpectedValues): boolean {
  return allowed === "any" || value === undefined || value === null ||
    (allowed as readonly unknown[]).includes(value);
}

function checkExpected(file: WeightFile, key: string, allowed: ExpectedValues): void {
  const value = metadataAt(file.metadata, key);
  if (isExpected(value, allowed)) return;
  const wanted = ["absent", ...allowed].join(" or ");
  throw new UnsupportedError(`is ${describe(value)}, and only ${wanted} is built`, {
    file: file.name,
    place: key,
  });
}

// transformers 5 writes rope_parameters and takes an old rope_scaling beside it alone, theta and all, other engines the
// new one. Model cards ask to add a rope_scaling for long texts: what is meant is not known where the two differ.
function checkRopeRecords(file: WeightFile): void {
  const recordAt = (place: string) => {
    const value = metadataAt(file.metadata, place);
    if (value === undefined || value === null) return undefined;
    const record = checkField("ropeScaling", value, { file: file.name, place }) as object;
    return new Map(
      Object.entries(record).map(([key, one]) => [key === "type" ? "rope_type" : key, one]),
    );
  };
  const old = recordAt("rope_scaling");
  const given = recordAt("rope_parameters.full_attention") ?? recordAt("rope_parameters");
  if (old === undefined || given === undefined) return;
  for (const [key, value] of old) {
    const other = given.get(key);
    if (JSON.stringify(other) === JSON.stringify(value)) continue;
    throw new FormatError(
      `is ${describe(value)}, and rope_parameters.${key} is ${describe(other)}`,
      {
        file: file.name,
        place: `rope_scaling.${key}`,
        remedy: "Keep one of the two: rope_parameters, with what rope_scaling has",
      },
    );
  }
}

/** What is known of a model beside the numbers in its file. */
export interface CompleteOptions {
  readonly file: Pick<WeightFile, "name">;
  readonly keyOf: (name: FieldName) => string;
  readonly vocabulary: number | undefined;
  /** Expressions for what a file leaves out. */
  readonly derived: Readonly<Record<string, string>>;
  /** What it must not leave out. */
  readonly required: readonly string[];
  readonly convention: Convention;
}

function derive(
  given: FoundHyperparameters,
  { derived, file, keyOf }: CompleteOptions,
): FoundHyperparameters {
  const found: Record<string, unknown> = { ...given };
  for (const [name, expression] of Object.entries(derived)) {
    if (found[name] !== undefined) continue;
    const gap = sizeNames(expression).find((part) => found[part] === undefined);
    if (gap !== undefined) {
      throw new FormatError(`is missing, and ${keyOf(name as FieldName)} follows from it`, {
        file: file.name,
        place: keyOf(gap as FieldName),
      });
    }
    const at = { file: file.name, place: keyOf(name as FieldName) };
    found[name] = checkField(
      name as FieldName,
      sizeOf(expression, { params: found, place: at.place }),
      at,
    );
  }
  return found as FoundHyperparameters;
}

/**
 * Numbers with what follows from others, checked.
 *
 * @throws {FormatError} If one is missing or impossible.
 */
export function completeHyperparameters(
  given: FoundHyperparameters,
  options: CompleteOptions,
): Hyperparameters {
  const { file, keyOf } = options;
  const found = derive(given, options);
  const fail = (name: FieldName, message: string): never => {
    throw new FormatError(message, { file: file.name, place: keyOf(name) });
  };
  function need<T>(name: FieldName, value: T | undefined): T {
    return value ?? fail(name, "is missing, and the model cannot be built without it");
  }
  for (const name of options.required as FieldName[]) need<unknown>(name, found[name]);
  const layers = need("layers", found.layers);
  const hidden = need("hidden", found.hidden);
  const heads = need("heads", found.heads);
  const kvHeads = found.kvHeads ?? heads;
  if (heads % kvHeads !== 0) {
    fail("kvHeads", `is ${kvHeads}, which does not divide the ${heads} query heads`);
  }
  for (const name of ["heads", "encoderHeads"] as const) {
    if (found.headDim !== undefined || hidden % (found[name] ?? 1) === 0) continue;
    fail(name, `is ${found[name]}, which does not divide the hidden size ${hidden}`);
  }
  checkExperts(found, fail);
  const headDim = found.headDim ?? hidden / heads;
  const ropeDim = found.ropeDim ?? Math.floor(headDim * (found.ropeFraction ?? 1));
  if (ropeDim > headDim || ropeDim % 2 !== 0) {
    fail(
      found.ropeDim === undefined ? "ropeFraction" : "ropeDim",
      `rotates ${ropeDim} channels of heads of ${headDim}: it must be even and no more than these`,
    );
  }
  // Networks that read no tokens have 0, and no text that could be too long.
  const vocabulary = need("vocabulary", options.vocabulary ?? found.vocabulary);
  if (found.vocabulary !== undefined && found.vocabulary !== vocabulary) {
    fail("vocabulary", `is ${found.vocabulary}, but the embedding tensor has ${vocabulary} rows`);
  }
  return {
    ...found,
    ...ropeScaling(found, options),
    layers,
    hidden,
    heads,
    kvHeads,
    headDim,
    valueDim: found.valueDim ?? headDim,
    ropeDim,
    vocabulary,
    embeddingDim: found.embeddingDim ?? hidden,
    feedForward: need("feedForward", found.feedForward),
    context: need("context", vocabulary === 0 ? found.context ?? 0 : found.context),
    normEpsilon: need("normEpsilon", found.normEpsilon),
  };
}

/** So many experts must be there to be chosen, in groups of equal size. */
function checkExperts(
  { experts, expertsUsed = 0, expertGroups, expertGroupsUsed }: FoundHyperparameters,
  fail: (name: FieldName, message: string) => never,
): void {
  if (!experts) return;
  if (expertsUsed > experts) {
    fail("expertsUsed", `is ${expertsUsed}, and there are ${experts} experts`);
  }
  if (!expertGroups) return;
  if (experts % expertGroups !== 0) {
    fail("expertGroups", `is ${expertGroups}, which does not divide ${experts} experts`);
  }
  const groups = expertGroupsUsed || expertGroups;
  if (groups > expertGroups) {
    fail("expertGroupsUsed", `is ${groups}, and there are ${expertGroups} groups`);
  }
  if (expertsUsed > groups * experts / expertGroups) {
    fail("expertsUsed", `is ${expertsUsed}, and ${groups} of ${expertGroups} groups hold fewer`);
  }
}

// A rule of GGUF that has a factor and no name is the linear one. Before there was a record of the rule, files had that
// factor alone. A factor of 0 stretches nothing, whatever the rule, as llama.cpp has it.
function ropeScaling(
  { ropeScaling, ropeLinearFactor }: FoundHyperparameters,
  { convention }: CompleteOptions,
): Pick<FoundHyperparameters, "ropeScaling"> {
  if (convention !== "gguf") return {};
  const type = ropeScaling?.type;
  if ((type === "linear" || type === "yarn") && ropeScaling?.factor === 0) {
    return { ropeScaling: { type: "none" } };
  }
  if (type !== undefined) return {};
  const factor = ropeScaling?.factor ?? ropeLinearFactor;
  return factor ? { ropeScaling: { ...ropeScaling, type: "linear", factor } } : {};
}
