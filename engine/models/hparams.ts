// The numbers of one model, read from its file and checked before anything is built on them. Names and
// their spellings come from the spec's data; this file holds what a value may be and what follows when it
// is absent. Nothing is trusted: billions of layers, no heads, or a negative length
// is refused with the key that said so (fixtures: stage "model build").

import { FormatError, UnsupportedError } from "../errors.ts";
import type { MetadataValue, WeightFile } from "../formats/source.ts";
import {
  type FieldKind,
  type FieldName,
  FIELDS,
  type FoundHyperparameters,
  HYPERPARAMETERS,
} from "./hparam_fields.ts";
import { metadataAt } from "./metadata.ts";
import type { ResolvedSpec } from "./spec.ts";

/** Values after defaults and what follows from others. */
export interface Hyperparameters extends FoundHyperparameters {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly feedForward: number;
  readonly vocabulary: number;
  readonly context: number;
  readonly normEpsilon: number;
  readonly activation: string;
  /** Leading channels of a head that are rotated. */
  readonly ropeDim: number;
}

/**
 * Reads and checks the hyperparameters of a model.
 *
 * @param vocabulary Rows of the embedding tensor.
 * @throws {FormatError} Naming the key, its value and what it must be.
 * @throws {UnsupportedError} For values per layer, and for keys that ask for something that is not built.
 */
export function readHyperparameters(
  { spec, convention, names }: ResolvedSpec,
  file: WeightFile,
  { architecture, vocabulary }: { architecture: string; vocabulary: number | undefined },
): Hyperparameters {
  const spellings = new Map(
    Object.entries(names.hyperparameters).map(([name, keys]) =>
      [name, keys.map((key) => key.replace("{arch}", architecture))] as const
    ),
  );
  for (const [key, allowed] of Object.entries(names.expected)) {
    checkExpected(file, key.replace("{arch}", architecture), allowed);
  }
  const found: Record<string, unknown> = { ...spec.defaults };
  for (const name of HYPERPARAMETERS) {
    for (const key of spellings.get(name) ?? []) {
      const value = metadataAt(file.metadata, key);
      if (value === undefined || value === null) continue;
      found[name] = checkField(name as FieldName, value, { file: file.name, place: key });
      break;
    }
  }
  for (const { container, when, set } of spec.variants ?? []) {
    const holds = Object.entries(when).every(([name, value]) => found[name] === value);
    if (container === convention && holds) Object.assign(found, set);
  }
  const keyOf = (name: FieldName) => spellings.get(name)?.[0] ?? name;
  return complete(found as FoundHyperparameters, { file, keyOf, vocabulary });
}

function checkExpected(file: WeightFile, key: string, allowed: readonly unknown[]): void {
  const value = metadataAt(file.metadata, key);
  if (value === undefined || value === null || allowed.includes(value)) return;
  const wanted = ["absent", ...allowed].join(" or ");
  throw new UnsupportedError(`is ${describe(value)}, and only ${wanted} is built`, {
    file: file.name,
    place: key,
  });
}

interface CompleteOptions {
  readonly file: WeightFile;
  readonly keyOf: (name: FieldName) => string;
  readonly vocabulary: number | undefined;
}

function complete(found: FoundHyperparameters, options: CompleteOptions): Hyperparameters {
  const { file, keyOf } = options;
  const fail = (name: FieldName, message: string): never => {
    throw new FormatError(message, { file: file.name, place: keyOf(name) });
  };
  function need<T>(name: FieldName, value: T | undefined): T {
    return value ?? fail(name, "is missing, and the model cannot be built without it");
  }
  const layers = need("layers", found.layers);
  const hidden = need("hidden", found.hidden);
  const heads = need("heads", found.heads);
  const kvHeads = found.kvHeads ?? heads;
  if (heads % kvHeads !== 0) {
    fail("kvHeads", `is ${kvHeads}, which does not divide the ${heads} query heads`);
  }
  if (found.headDim === undefined && hidden % heads !== 0) {
    fail("heads", `is ${heads}, which does not divide the hidden size ${hidden}`);
  }
  const headDim = found.headDim ?? hidden / heads;
  const ropeDim = found.ropeDim ?? Math.floor(headDim * (found.ropeFraction ?? 1));
  if (ropeDim > headDim || ropeDim % 2 !== 0) {
    fail(
      found.ropeDim === undefined ? "ropeFraction" : "ropeDim",
      `rotates ${ropeDim} channels of heads of ${headDim}: it must be even and no more than these`,
    );
  }
  if (found.valueDim !== undefined && found.valueDim !== headDim) {
    throw new UnsupportedError(
      `values of ${found.valueDim} channels with keys of ${headDim} are not built`,
      { file: file.name, place: keyOf("valueDim") },
    );
  }
  const vocabulary = need("vocabulary", options.vocabulary ?? found.vocabulary);
  if (found.vocabulary !== undefined && found.vocabulary !== vocabulary) {
    fail("vocabulary", `is ${found.vocabulary}, but the embedding tensor has ${vocabulary} rows`);
  }
  return {
    ...found,
    ...ropeScaling(found),
    layers,
    hidden,
    heads,
    kvHeads,
    headDim,
    ropeDim,
    vocabulary,
    feedForward: need("feedForward", found.feedForward),
    context: need("context", found.context),
    normEpsilon: need("normEpsilon", found.normEpsilon),
    activation: need("activation", found.activation),
  };
}

// Before there was a record of the rule, GGUF files had the factor of the linear one alone.
function ropeScaling(
  { ropeScaling, ropeLinearFactor }: FoundHyperparameters,
): Pick<FoundHyperparameters, "ropeScaling"> {
  if (ropeScaling || ropeLinearFactor === undefined) return {};
  return { ropeScaling: { type: "linear", factor: ropeLinearFactor } };
}

function checkField(
  name: FieldName,
  raw: MetadataValue,
  at: { file: string; place: string },
): unknown {
  const { kind, max = Infinity } = FIELDS[name] as { kind: FieldKind; max?: number };
  const value = unwrap(raw, kind, at);
  const fail = (wanted: string): never => {
    throw new FormatError(`must be ${wanted}, and is ${describe(value)}`, at);
  };
  switch (kind) {
    case "count":
    case "index": {
      const min = kind === "count" ? 1 : 0;
      const fits = typeof value === "number" && Number.isInteger(value);
      return fits && value >= min && value <= max
        ? value
        : fail(`an integer from ${min} to ${max}`);
    }
    case "positive":
      return typeof value === "number" && value > 0 && value <= max
        ? value
        : fail(`a number above 0, at most ${max}`);
    case "flag":
      return typeof value === "boolean" ? value : fail("true or false");
    case "word":
      return typeof value === "string" ? value : fail("a string");
    case "words":
      return Array.isArray(value) && value.every((item) => typeof item === "string")
        ? value
        : fail("a list of strings");
    case "record":
      return typeof value === "object" && value !== null && !Array.isArray(value)
        ? value
        : fail("an object");
  }
}

// Some writers store one value per layer; where all are equal they mean the plain number.
function unwrap(value: MetadataValue, kind: string, at: { file: string; place: string }): unknown {
  const isList = Array.isArray(value) || ArrayBuffer.isView(value);
  if (!isList || kind === "words") return value;
  const items = Array.from(value as ArrayLike<unknown>);
  if (items.length > 0 && items.every((item) => item === items[0])) return items[0];
  throw new UnsupportedError(
    `has a value per layer (${describe(items)}), and layers of different sizes are not built`,
    at,
  );
}

function describe(value: unknown): string {
  const text = typeof value === "bigint"
    ? `${value}`
    : `${typeof value} ${JSON.stringify(value) ?? ""}`;
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
