// What an architecture is: data made of atoms (spec IF-2, IF-3). A spec file says which norm, activation,
// rotary rule, residual topology and tensor names a family of models uses; build.ts turns it into a graph
// and never asks for a name. A container may differ from the family's own layout in single atoms (GGUF
// stores Llama's query and key rows permuted, and Gemma's norms with 1 already added): `containers` holds
// those differences, merged over the rest before the spec is read.
//
// To add an architecture: one JSON file in specs/, one line in specs/mod.ts; a new atom is one value in a
// rule below and its code in blocks/.

import { either, flag, list, number, oneOf, optional, record, table, text } from "./check.ts";
import type { Rule } from "./check.ts";
import { FormatError } from "../errors.ts";
import { ACTIVATION_NAMES } from "../graph/activations.ts";
import { HYPERPARAMETERS } from "./hparam_fields.ts";

/** Naming conventions of tensors and hyperparameters. */
export type Convention = "huggingface" | "gguf";

const pattern = record({
  /**
   * - `uniform`: every layer is `kind`
   * - `every`: each `period`-th layer is `kind`, the rest `others`
   * - `from`: layers from `start` on are `kind` if the flag `when` is set, the rest `others`
   */
  rule: oneOf("uniform", "every", "from"),
  kind: text,
  others: optional(text),
  period: optional(text),
  when: optional(text),
  start: optional(text),
});

const attentionKind = record({
  /** Hyperparameter that holds the base of the rotary angles. */
  theta: text,
  /** Hyperparameter that holds the rule that changes the frequencies. */
  scaling: optional(text),
  /** Hyperparameter that holds how many positions are seen; absent: all. */
  window: optional(text),
});

// Values that keys of a file must have, if they are there: what else they could ask for is not built.
const expected = table(list(either(number, either(flag, text, ""), "a number, flag or string")));

const names = record({
  hyperparameters: optional(table(list(text))),
  expected: optional(expected),
  tensors: optional(table(text)),
});

const spec = record({
  name: text,
  /** Values of `general.architecture` (GGUF) and `model_type` (config.json) that mean this spec. */
  matches: record({ huggingface: list(text), gguf: list(text) }),
  /** Hyperparameters that a file may leave out. */
  defaults: optional(table(either(number, text, "a number or a string"))),
  /** Hyperparameters that follow from others and are written in no file. */
  variants: optional(list(record({
    container: oneOf("huggingface", "gguf"),
    when: table(number),
    set: table(number),
  }))),
  embedding: record({ scale: either(number, oneOf("sqrt_hidden"), 'a number or "sqrt_hidden"') }),
  /** The weight in use is `base` + the stored one. */
  norm: record({ kind: oneOf("rms"), base: number }),
  attention: record({
    /** Bias of the query, key and value projections. */
    bias: oneOf("none", "present", "required"),
    outputBias: oneOf("none", "present", "required"),
    /** Norm over each head of query and key, before the rotation. */
    headNorm: optional(flag),
    ropeStyle: oneOf("half", "interleaved"),
    kinds: table(attentionKind),
    /** Kind by the name that a file's list of layer types uses. */
    types: optional(table(text)),
    pattern,
  }),
  feedForward: record({
    kind: oneOf("gated"),
    activation: optional(oneOf(...ACTIVATION_NAMES)),
    bias: oneOf("none", "present"),
  }),
  /** Residual branches of a layer in order: x += after(block(before(x))). */
  layer: list(record({
    block: oneOf("attention", "feedForward"),
    before: text,
    after: optional(text),
  })),
  names: optional(record({ huggingface: optional(names), gguf: optional(names) })),
});

/** An architecture, checked. */
export type ModelSpec = typeof spec extends Rule<infer T> ? T : never;

/** Names of one convention, complete. */
export interface Names {
  readonly hyperparameters: Readonly<Record<string, readonly string[]>>;
  readonly tensors: Readonly<Record<string, string>>;
  /** Values that keys must have, if they are there. */
  readonly expected: Readonly<Record<string, readonly (number | boolean | string)[]>>;
  /** What `{prefix}` may stand for; the first under which the embedding exists is taken. */
  readonly prefixes: readonly string[];
  /** Endings of tensor names that hold nothing needed. */
  readonly ignored: readonly string[];
}

/** A spec as it holds for one convention. */
export interface ResolvedSpec {
  readonly spec: ModelSpec;
  readonly convention: Convention;
  readonly names: Names;
}

const conventionNames = record({
  hyperparameters: table(list(text)),
  prefixes: list(text),
  tensors: table(text),
  expected,
  ignored: list(text),
});

/**
 * Checks a spec file and merges what its convention changes.
 *
 * @param json Content of the file.
 * @param common Names that all architectures of a convention share (specs/names.json).
 * @throws {FormatError} Naming the key, what is allowed and what stood there.
 */
export function resolveSpec(
  json: unknown,
  common: unknown,
  { convention, file }: { convention: Convention; file: string },
): ResolvedSpec {
  const { containers = {}, ...base } = json as { containers?: Record<string, unknown> };
  const checked = spec(merge(base, containers[convention]), { file, path: "" });
  const shared = conventionNames((common as Record<string, unknown>)[convention], {
    file: "names.json",
    path: convention,
  });
  const own = checked.names?.[convention];
  const resolved = {
    spec: checked,
    convention,
    names: {
      ...shared,
      hyperparameters: { ...shared.hyperparameters, ...own?.hyperparameters },
      tensors: { ...shared.tensors, ...own?.tensors },
      expected: { ...shared.expected, ...own?.expected },
    },
  };
  checkReferences(resolved, file);
  return resolved;
}

function checkReferences({ spec, names }: ResolvedSpec, file: string): void {
  const { kinds, pattern, types } = spec.attention;
  const refer = (what: string, value: string | undefined, known: readonly string[]) => {
    if (value === undefined || known.includes(value)) return;
    throw new FormatError(`names "${value}": known are ${known.join(", ")}`, { file, place: what });
  };
  const kindNames = Object.keys(kinds);
  refer("attention.pattern.kind", pattern.kind, kindNames);
  refer("attention.pattern.others", pattern.others, kindNames);
  for (const kind of Object.values(types ?? {})) refer("attention.types", kind, kindNames);
  for (const [name, kind] of Object.entries(kinds)) {
    for (const key of [kind.theta, kind.scaling, kind.window]) {
      refer(`attention.kinds.${name}`, key, HYPERPARAMETERS);
    }
  }
  for (const key of [pattern.period, pattern.when, pattern.start]) {
    refer("attention.pattern", key, HYPERPARAMETERS);
  }
  for (const key of Object.keys(spec.defaults ?? {})) refer("defaults", key, HYPERPARAMETERS);
  for (const key of Object.keys(names.hyperparameters)) {
    refer("names.hyperparameters", key, HYPERPARAMETERS);
  }
  spec.layer.forEach(({ before, after }, index) => {
    refer(`layer[${index}].before`, before, Object.keys(names.tensors));
    refer(`layer[${index}].after`, after, Object.keys(names.tensors));
  });
}

function merge(base: unknown, change: unknown): unknown {
  if (change === undefined) return base;
  if (!isObject(base) || !isObject(change)) return change;
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(change)) result[key] = merge(base[key], value);
  return result;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
