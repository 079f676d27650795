// What an architecture is: data made of atoms (spec IF-2, IF-3). A spec file says which norm, activation,
// rotary rule, residual topology and tensor names a family of models uses; build.ts turns it into a graph
// and never asks for a name. Two things may change single atoms, merged over the rest before the spec is
// checked: `containers` (GGUF stores Llama's query and key rows permuted, and Gemma's norms with 1 already
// added) and `cases` (members of a family that differ by what their file says). spec_rules.ts has the format.
//
// To add an architecture: one JSON file in specs/ (ARCHITECTURE.md has the steps); a new atom is one value in a
// rule of spec_rules.ts and its code in blocks/.

import { OBJECT } from "../record.ts";
import { anything, list, record, table, text } from "./check.ts";
import { FormatError } from "../errors.ts";
import {
  checkField,
  type FieldName,
  type FoundHyperparameters,
  HYPERPARAMETERS,
} from "./hparam_fields.ts";
import { sizeNames } from "./sizes.ts";
import { checkReads } from "./spec_reads.ts";
import {
  expectedRule,
  type ExpectedValues,
  type ModelSpec,
  specRule,
  type TensorRules,
  tensorRules,
} from "./spec_rules.ts";

export type { ExpectedValues, Factor, ModelSpec, TensorRule, TensorRules } from "./spec_rules.ts";

/** Naming conventions of tensors and hyperparameters. */
export type Convention = "huggingface" | "gguf";

/** Names of one convention, complete. */
export interface Names {
  readonly hyperparameters: Readonly<Record<string, readonly string[]>>;
  readonly tensors: Readonly<Record<string, TensorRules>>;
  /** Values that keys must have, if they are there. */
  readonly expected: Readonly<Record<string, ExpectedValues>>;
  /** What `{prefix}` may stand for; the first under which the embedding exists is taken. */
  readonly prefixes: readonly string[];
  /** Endings of tensor names that hold nothing needed; with a dot at their end, beginnings. */
  readonly ignored: readonly string[];
  /** Keys that change no result, each with the reason; `*` stands for any part of one. */
  readonly harmless: readonly (readonly [key: string, because: string])[];
  /** Endings of tensor names in older files, and what they are called here. */
  readonly renamed: Readonly<Record<string, string>>;
}

/** A spec as it holds for one convention. */
export interface ResolvedSpec {
  readonly spec: ModelSpec;
  readonly convention: Convention;
  readonly names: Names;
  /** The same with the cases that hold for a file's hyperparameters and tensors. */
  specialize(found: FoundHyperparameters, has?: HasRole): ResolvedSpec;
}

/** Whether a file has a role's tensor in its first layer; where this is not known, it has none. */
export type HasRole = (role: string, names: Names) => boolean;

const conventionNames = record({
  hyperparameters: table(list(text)),
  prefixes: list(text),
  tensors: tensorRules,
  expected: expectedRule,
  ignored: list(text),
  harmless: table(list(text)),
});

const wholeRule = table(anything);
const containersRule = table(table(anything));

/** Where a spec comes from and for what. */
export interface SpecContext {
  readonly convention: Convention;
  /** For messages. */
  readonly file: string;
}

/**
 * Checks a spec file and merges what its convention changes.
 *
 * @param json Content of the file.
 * @param common Names that all architectures of a convention share (specs/names.json).
 * @throws {FormatError} Naming the key, what is allowed and what stood there.
 */
export function resolveSpec(
  json: unknown,
  { common, context }: { readonly common: unknown; readonly context: SpecContext },
): ResolvedSpec {
  const { convention, file } = context;
  const { containers = {}, $schema: _editor, ...base } = wholeRule(json, { file, path: "" });
  containersRule(containers, { file, path: "containers" });
  const shared = conventionNames((common as Record<string, unknown>)[convention], {
    file: "names.json",
    path: convention,
  });
  const merged = merge(base, (containers as Record<string, unknown>)[convention]);
  const resolve = (source: unknown): ResolvedSpec => {
    const spec = specRule(source, { file, path: "" });
    const own = spec.names?.[convention];
    const names: Names = {
      hyperparameters: { ...shared.hyperparameters, ...own?.hyperparameters },
      tensors: { ...shared.tensors, ...own?.tensors },
      expected: { ...shared.expected, ...own?.expected },
      prefixes: own?.prefixes ?? shared.prefixes,
      ignored: [...shared.ignored, ...own?.ignored ?? []],
      harmless: [shared.harmless, own?.harmless ?? {}].flatMap(byKey),
      renamed: own?.renamed ?? {},
    };
    checkReads(spec, file);
    checkReferences(spec, names, file);
    const specialize = (found: FoundHyperparameters, has: HasRole = () => false): ResolvedSpec => {
      const stores = (role: string) => has(role, names);
      const holding = (spec.cases ?? []).filter((one) => holds(one, found, stores));
      if (holding.length === 0) return { spec, convention, names, specialize };
      const rest = { ...source as Record<string, unknown>, cases: [] };
      return resolve(holding.reduce<unknown>((whole, { use }) => merge(whole, use), rest));
    };
    return { spec, convention, names, specialize };
  };
  return resolve(merged);
}

function byKey(reasons: Readonly<Record<string, readonly string[]>>): [string, string][] {
  return Object.entries(reasons)
    .flatMap(([because, keys]) => keys.map((key): [string, string] => [key, because]));
}

type Case = NonNullable<ModelSpec["cases"]>[number];

function holds(
  { when = {}, given = [], absent = [], stored = [], lacking = [] }: Case,
  found: FoundHyperparameters,
  has: (role: string) => boolean,
): boolean {
  const values = found as Readonly<Record<string, unknown>>;
  return Object.entries(when).every(([name, value]) => values[name] === value) &&
    given.every((name) => values[name]) && absent.every((name) => !values[name]) &&
    stored.every(has) && !lacking.some(has);
}

type Refer = (
  what: string,
  value: string | undefined,
  known?: readonly string[],
) => void;

function checkReferences(spec: ModelSpec, names: Names, file: string): void {
  const refer: Refer = (what, value, known = HYPERPARAMETERS) => {
    if (value === undefined || known.includes(value)) return;
    throw new FormatError(`names "${value}": known are ${known.join(", ")}`, { file, place: what });
  };
  const referSize = (what: string, size: number | string | undefined) => {
    if (typeof size !== "string") return;
    try {
      for (const name of sizeNames(size)) refer(what, name);
    } catch (error) {
      if (error instanceof FormatError) throw error;
      throw new FormatError(`is no size: ${(error as Error).message}`, { file, place: what });
    }
  };
  checkAttention(spec, refer);
  for (const what of ["defaults", "derived"] as const) {
    for (const key of Object.keys(spec[what] ?? {})) refer(what, key);
  }
  const check = (place: string, values: object = {}) => {
    for (const [key, value] of Object.entries(values)) {
      checkField(key as FieldName, value, { file, place: `${place}.${key}` });
    }
  };
  check("defaults", spec.defaults);
  for (const key of spec.required ?? []) refer("required", key);
  for (const [key, size] of Object.entries(spec.derived ?? {})) referSize(`derived.${key}`, size);
  for (const { when = {}, given = [], absent = [] } of spec.cases ?? []) {
    for (const key of [...Object.keys(when), ...given, ...absent]) refer("cases", key);
    check("cases", when);
  }
  const factors = {
    embedding: spec.embedding.scale,
    residual: spec.residual,
    head: spec.head?.scale,
  };
  for (const [what, factor] of Object.entries(factors)) {
    if (typeof factor === "object") Object.keys(factor).forEach((key) => refer(what, key));
  }
  for (const key of Object.keys(names.hyperparameters)) refer("names.hyperparameters", key);
  const roles = Object.keys(names.tensors);
  for (const { stored = [], lacking = [] } of spec.cases ?? []) {
    for (const role of [...stored, ...lacking]) refer("cases", role, roles);
  }
  for (const [what, prefix, layer] of stacksOf(spec)) {
    layer.forEach(({ block, before, after, scale, sum }, index) => {
      refer(`${what}[${index}].block`, block, blocksOf(spec, what));
      for (const [key, role] of Object.entries({ before, after, scale, sum })) {
        refer(`${what}[${index}].${key}`, role && prefix + role, roles);
      }
    });
  }
  refer("encoder.norm", spec.encoder?.norm && `encoder_${spec.encoder.norm}`, roles);
  refer("embedding.norm", spec.embedding.norm, roles);
  for (const role of spec.embedding.patches?.leading ?? []) {
    refer("embedding.patches.leading", role, roles);
  }
  refer("head.transform.norm", spec.head?.transform?.norm, roles);
  referSize("feedForward.shared.inner", spec.feedForward.shared?.inner);
  for (const [role, rules] of Object.entries(names.tensors)) {
    for (const rule of [rules].flat()) {
      if (typeof rule === "string") continue;
      const { stack, matrices, rows = { count: 0, stride: 0 } } = rule;
      for (const size of [stack, matrices, ...Object.values(rows)]) {
        referSize(`names.tensors.${role}`, size);
      }
    }
  }
}

type Stack = [name: string, prefix: string, layer: ModelSpec["layer"]];

/** Layer lists by name, and what their roles begin with. */
function stacksOf({ layer, encoder }: ModelSpec): Stack[] {
  const decoder: Stack = ["layer", "", layer];
  return encoder ? [decoder, ["encoder.layer", "encoder_", encoder.layer]] : [decoder];
}

/** There is a source to see for the decoder behind an encoder only. */
function blocksOf({ network }: ModelSpec, stack: string): string[] {
  const hasSource = network === "encoder-decoder" && stack === "layer";
  return ["attention", "feedForward", ...hasSource ? ["cross"] : []];
}

function checkAttention({ attention: { kinds, pattern, types } }: ModelSpec, refer: Refer): void {
  const kindNames = Object.keys(kinds);
  refer("attention.pattern.kind", pattern.kind, kindNames);
  refer("attention.pattern.others", pattern.others, kindNames);
  for (const kind of Object.values(types ?? {})) refer("attention.types", kind, kindNames);
  for (const [name, { theta, scaling, window }] of Object.entries(kinds)) {
    for (const key of [theta, scaling, window]) refer(`attention.kinds.${name}`, key);
  }
  for (const key of [pattern.period, pattern.when, pattern.start, pattern.layers]) {
    refer("attention.pattern", key);
  }
}

// A change of null takes a key away.
function merge(base: unknown, change: unknown): unknown {
  if (change === undefined) return base;
  if (!OBJECT.accepts(base) || !OBJECT.accepts(change)) return change;
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(change)) {
    if (value === null) delete result[key];
    else result[key] = merge(base[key], value);
  }
  return result;
}
