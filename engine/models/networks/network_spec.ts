// What a network of pictures is: data (specs/*.json). Its steps name atoms (atoms/), which are a few ops with their
// weights, or blocks of the same file, which are steps again, so that no architecture is known to code. Language models
// have a format of their own (../spec.ts): there all layers are alike, and what differs is listed; here the order of
// things is what differs.
//
// A step is one of
//   { "do": "conv", "of": "x", "as": "x", "at": "conv_in", …parameters }   an atom or a block
//   { "each": "i", "count": "layers", "steps": […] }                       for i from 0 to layers - 1
//   { "if": "i > 0", "steps": […] }
//   { "let": { "out": "block_out_channels[i]" } }                          names for what follows
// `of` and `as` are names of values ("x" where they are absent), `at` the place of weights below that of the block around
// it, with {expressions} in it; all else that is text is an expression (expression.ts) of the config's keys and of names.
// A value that is given to a name with "+" before it lies on a pile, whose top the name stands for; "-" takes it away.

import { FormatError } from "../../errors.ts";
import { OBJECT } from "../../record.ts";
import {
  anything,
  list,
  number,
  oneOrMore,
  optional,
  type Place,
  record,
  type Rule,
  table,
  text,
  textOr,
} from "../check.ts";
import { ATOMS } from "./atoms/mod.ts";

/** An atom or block, what it is given, and what its results are called. */
export interface Call {
  readonly do: string;
  readonly of: readonly (string | number)[];
  readonly as: readonly string[];
  readonly at?: string | undefined;
  /** Numbers, flags, expressions. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** What is done, in order. */
export type Step =
  | Call
  | { readonly each: string; readonly count: string; readonly steps: readonly Step[] }
  | { readonly if: string; readonly steps: readonly Step[] }
  | { readonly let: Readonly<Record<string, string>> };

/** Steps under a name. */
export interface Block {
  readonly takes: readonly string[];
  /** Names of its parameters. */
  readonly sizes?: readonly string[];
  readonly steps: readonly Step[];
  readonly gives: readonly string[];
}

/** A graph that is built from the weights: an autoencoder has two. */
export interface NetworkRule {
  /** Dims of inputs: names of sizes that each run has, or expressions. */
  readonly inputs: Readonly<Record<string, readonly string[]>>;
  readonly steps: readonly Step[];
  /** Names of values by names of outputs. */
  readonly outputs: Readonly<Record<string, string>>;
}

const CALL = { do: text, of: anything, as: anything, at: text };

const stepRule: Rule<Step> = Object.assign(
  (value: unknown, place: Place): Step => {
    if (OBJECT.accepts(value) && "do" in value) return callOf(value, place);
    if (OBJECT.accepts(value) && "let" in value) return LET(value, place);
    return OBJECT.accepts(value) && "each" in value ? EACH(value, place) : IF(value, place);
  },
  { schema: true },
);

const LET = record({ let: table(text) });
const EACH = record({ each: text, count: text, steps: list(stepRule) });
const IF = record({ if: text, steps: list(stepRule) });

const names = oneOrMore(text);
const operands = oneOrMore(textOr(number as Rule<unknown>) as Rule<string | number>);

function callOf(value: Readonly<Record<string, unknown>>, place: Place): Call {
  const { do: name, of = "x", as = "x", at, ...parameters } = value;
  const under = (key: string): Place => ({ ...place, path: `${place.path}.${key}` });
  return {
    do: CALL.do(name, under("do")),
    of: [operands(of, under("of"))].flat() as (string | number)[],
    as: [names(as, under("as"))].flat() as string[],
    ...at !== undefined && { at: CALL.at(at, under("at")) },
    parameters,
  };
}

const blockRule = record({
  takes: list(text),
  sizes: optional(list(text)),
  steps: list(stepRule),
  gives: list(text),
});

const networkRule = record({
  inputs: table(list(text)),
  steps: list(stepRule),
  outputs: table(text),
});

const specRule = record({
  name: text,
  /** What `_class_name` of a config says. */
  classes: list(text),
  /** Keys that configs may leave out. */
  defaults: table(anything),
  /** Keys with the values that are built; of a list each item. */
  only: table(list(anything)),
  /** Keys that change no result. */
  harmless: list(text),
  /** Names for expressions, each of those before it. */
  values: optional(table(text)),
  /** Parts of tensor names, and what older files write for them. */
  renamed: optional(table(text)),
  blocks: table(blockRule),
  networks: table(networkRule),
});

/** A spec file. */
export interface NetworkSpec extends Omit<ReturnType<typeof specRule>, "blocks" | "networks"> {
  readonly blocks: Readonly<Record<string, Block>>;
  readonly networks: Readonly<Record<string, NetworkRule>>;
}

/**
 * Checks a spec file.
 *
 * @throws {FormatError} Naming the key, what is allowed and what stood there.
 */
export function readNetworkSpec(json: unknown, file: string): NetworkSpec {
  const spec: NetworkSpec = specRule(json, { file, path: "" });
  for (const [name, { steps }] of Object.entries({ ...spec.blocks, ...spec.networks })) {
    checkCalls(steps, { spec, file, place: name });
  }
  return spec;
}

function checkCalls(
  steps: readonly Step[],
  context: { readonly spec: NetworkSpec; readonly file: string; readonly place: string },
): void {
  const { spec, file, place } = context;
  for (const step of steps) {
    if ("steps" in step) checkCalls(step.steps, context);
    if (!("do" in step)) continue;
    const block = spec.blocks[step.do], atom = ATOMS[step.do];
    const known = block?.sizes ?? (atom && Object.keys(atom.parameters)) ?? [];
    const where = { file, place: `${place}, ${step.do}` };
    if (!block && !atom) {
      const all = [...Object.keys(spec.blocks), ...Object.keys(ATOMS)].join(", ");
      throw new FormatError(`is neither an atom nor a block: known are ${all}`, where);
    }
    const other = Object.keys(step.parameters).find((key) => !known.includes(key));
    if (other) {
      throw new FormatError(`has no "${other}": known are ${known.join(", ")}`, where);
    }
    const wanted = block ? [block.takes.length, block.takes.length] : atom!.inputs;
    if (step.of.length >= wanted[0]! && step.of.length <= wanted[1]!) continue;
    throw new FormatError(`is given ${step.of.length} values`, where);
  }
}
