// Checked attributes. An op declares one rule an attribute; reading fills in defaults and refuses what
// is unknown or mistyped, so a misspelt option can never be ignored.

import {
  FLAG,
  listOf,
  NUMBER,
  oneOf,
  recordReader,
  TEXT,
  type ValueRule,
  valueRule,
  whole,
} from "../record.ts";
import type { Dim } from "../graph/dim/mod.ts";
import type { Attribute, Attributes } from "../graph/graph.ts";

/** What one attribute may be. */
export interface AttributeRule<T extends Attribute = Attribute> extends ValueRule<T> {
  /** Absent: the attribute must be given. */
  readonly fallback?: T | undefined;
  /** All that it may be, where these are words. */
  readonly words?: readonly T[];
}

/** Rules by attribute name. */
export type AttributeRules = Readonly<Record<string, AttributeRule>>;

/** The types that rules let through. */
export type AttributesOf<R extends AttributeRules> = {
  readonly [K in keyof R]: R[K] extends AttributeRule<infer T> ? T : never;
};

/** Makes rules of one kind. */
type RuleMaker<T extends Attribute> = (fallback?: T) => AttributeRule<T>;

function rulesOf<T extends Attribute>(rule: ValueRule<T>): RuleMaker<T> {
  return (fallback) => ({ ...rule, fallback });
}

/** A finite number. */
export const number: RuleMaker<number> = rulesOf({ ...NUMBER, wanted: "a finite number" });
/** True or false. */
export const flag: RuleMaker<boolean> = rulesOf(FLAG);
/** A list of words. */
export const strings: RuleMaker<readonly string[]> = rulesOf(listOf(TEXT, "a list of strings"));
/** A list of integers. */
export const integers: RuleMaker<readonly number[]> = rulesOf(
  listOf(whole(""), "a list of integers"),
);
/** A list of finite numbers. */
export const numbers: RuleMaker<readonly number[]> = rulesOf(
  listOf(NUMBER, "a list of finite numbers"),
);

const DIM = valueRule<Dim>("an integer or a dim", isDim);
/** An integer, or an expression of symbols. */
export const dim: RuleMaker<Dim> = rulesOf(DIM);
/** A list of integers or expressions of symbols: sizes, starts, ends. */
export const dims: RuleMaker<readonly Dim[]> = rulesOf(listOf(DIM, "a list of integers or dims"));

/** An integer of at least `min`. */
export function integer(min: number, fallback?: number): AttributeRule<number> {
  return { ...whole(`an integer >= ${min}`, { least: min }), fallback };
}

/** One of some words. */
export function choice<const T extends string>(
  words: readonly T[],
  fallback?: T,
): AttributeRule<T> {
  return { ...oneOf(words, `one of ${words.join(", ")}`), fallback, words };
}

/** A list of integers of at least `min`. */
export function integersFrom(
  min: number,
  fallback?: readonly number[],
): AttributeRule<readonly number[]> {
  return { ...listOf(whole("", { least: min }), `a list of integers >= ${min}`), fallback };
}

function isDim(value: unknown): value is Dim {
  if (typeof value === "number") return Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && "terms" in value;
}

// Attributes that were read by these rules before: nodes hold them, and every pass asks again.
const complete = new WeakMap<Attributes, AttributeRules>();

const missing = (name: string): never => {
  throw new TypeError(`attribute "${name}" is missing`);
};

const readAll = recordReader<AttributeRule>({
  unknown(name, known) {
    throw new TypeError(`unknown attribute "${name}" (known: ${known || "none"})`);
  },
  absent: (name, { fallback }) => fallback ?? missing(name),
  read(name, value, { wanted, accepts }) {
    if (value === undefined) missing(name);
    if (accepts(value)) return value;
    throw new TypeError(`attribute "${name}" must be ${wanted}: it is ${JSON.stringify(value)}`);
  },
});

/**
 * Checks attributes and fills in defaults.
 *
 * @throws {TypeError} On an attribute that is unknown, missing, or not as its rule says.
 */
export function readAttributes<R extends AttributeRules>(
  rules: R,
  given: Attributes,
): AttributesOf<R> {
  if (complete.get(given) === rules) return given as AttributesOf<R>;
  const read = readAll(given, rules) as Attributes;
  complete.set(read, rules);
  return Object.freeze(read) as AttributesOf<R>;
}
