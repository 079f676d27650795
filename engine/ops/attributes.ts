// Checked attributes. An op declares one rule an attribute; reading fills in defaults and refuses what
// is unknown or mistyped, so a misspelt option can never be ignored.

import type { Dim } from "../graph/dim/mod.ts";
import type { Attribute, Attributes } from "../graph/graph.ts";

/** What one attribute may be. */
export interface AttributeRule<T extends Attribute = Attribute> {
  /** For messages: `a number >= 0`. */
  readonly expected: string;
  /** Absent: the attribute must be given. */
  readonly fallback?: T | undefined;
  /** All that it may be, where these are words. */
  readonly words?: readonly T[];
  accepts(value: Attribute): value is T;
}

/** Rules by attribute name. */
export type AttributeRules = Readonly<Record<string, AttributeRule>>;

/** The types that rules let through. */
export type AttributesOf<R extends AttributeRules> = {
  readonly [K in keyof R]: R[K] extends AttributeRule<infer T> ? T : never;
};

/** A finite number. */
export function number(fallback?: number): AttributeRule<number> {
  return {
    expected: "a finite number",
    fallback,
    accepts: (value): value is number => typeof value === "number" && Number.isFinite(value),
  };
}

/** An integer of at least `min`. */
export function integer(min: number, fallback?: number): AttributeRule<number> {
  return {
    expected: `an integer >= ${min}`,
    fallback,
    accepts: (value): value is number =>
      typeof value === "number" && Number.isSafeInteger(value) && value >= min,
  };
}

/** True or false. */
export function flag(fallback?: boolean): AttributeRule<boolean> {
  return {
    expected: "true or false",
    fallback,
    accepts: (value): value is boolean => typeof value === "boolean",
  };
}

/** One of some words. */
export function choice<const T extends string>(
  words: readonly T[],
  fallback?: T,
): AttributeRule<T> {
  return {
    expected: `one of ${words.join(", ")}`,
    fallback,
    words,
    accepts: (value): value is T => (words as readonly Attribute[]).includes(value),
  };
}

/** A list of integers of at least `min`. */
export function integersFrom(
  min: number,
  fallback?: readonly number[],
): AttributeRule<readonly number[]> {
  return {
    expected: `a list of integers >= ${min}`,
    fallback,
    accepts: (value): value is readonly number[] =>
      Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= min),
  };
}

/** A list of words. */
export function strings(): AttributeRule<readonly string[]> {
  return {
    expected: "a list of strings",
    accepts: (value): value is readonly string[] =>
      Array.isArray(value) && value.every((item) => typeof item === "string"),
  };
}

/** A list of integers. */
export function integers(fallback?: readonly number[]): AttributeRule<readonly number[]> {
  return {
    expected: "a list of integers",
    fallback,
    accepts: (value): value is readonly number[] =>
      Array.isArray(value) && value.every((item) => Number.isSafeInteger(item)),
  };
}

/** A list of finite numbers. */
export function numbers(fallback?: readonly number[]): AttributeRule<readonly number[]> {
  return {
    expected: "a list of finite numbers",
    fallback,
    accepts: (value): value is readonly number[] =>
      Array.isArray(value) && value.every((item) => Number.isFinite(item)),
  };
}

/** An integer, or an expression of symbols. */
export function dim(fallback?: Dim): AttributeRule<Dim> {
  return { expected: "an integer or a dim", fallback, accepts: isDim };
}

/** A list of integers or expressions of symbols: sizes, starts, ends. */
export function dims(fallback?: readonly Dim[]): AttributeRule<readonly Dim[]> {
  return {
    expected: "a list of integers or dims",
    fallback,
    accepts: (value): value is readonly Dim[] => Array.isArray(value) && value.every(isDim),
  };
}

function isDim(value: unknown): value is Dim {
  if (typeof value === "number") return Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && "terms" in value;
}

// Attributes that were read by these rules before: nodes hold them, and every pass asks again.
const complete = new WeakMap<Attributes, AttributeRules>();
const listed = new WeakMap<
  AttributeRules,
  readonly (readonly [string, AttributeRule<Attribute>])[]
>();

function entriesOf(rules: AttributeRules) {
  const known = listed.get(rules);
  if (known) return known;
  const entries = Object.entries(rules) as [string, AttributeRule<Attribute>][];
  listed.set(rules, entries);
  return entries;
}

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
  for (const name in given) {
    if (!Object.hasOwn(rules, name)) {
      const known = Object.keys(rules).join(", ") || "none";
      throw new TypeError(`unknown attribute "${name}" (known: ${known})`);
    }
  }
  const read: Record<string, Attribute> = {};
  for (const [name, rule] of entriesOf(rules)) {
    const isGiven = Object.hasOwn(given, name);
    const value = isGiven ? given[name] : rule.fallback;
    if (value === undefined) throw new TypeError(`attribute "${name}" is missing`);
    if (isGiven && !rule.accepts(value)) {
      throw new TypeError(
        `attribute "${name}" must be ${rule.expected}: it is ${JSON.stringify(value)}`,
      );
    }
    read[name] = value;
  }
  complete.set(read, rules);
  return Object.freeze(read) as AttributesOf<R>;
}
