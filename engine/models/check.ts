// A tiny schema checker for spec files. A spec is data that users will write too, so a wrong key must
// be answered with its path, what is allowed there and what stood there instead. Rules are functions from
// a value and its path to the typed value; they compose, and each carries the JSON Schema that says the
// same to an editor. Left out: unions of objects, defaults that depend on other keys.

import { FormatError } from "../errors.ts";
import {
  FLAG,
  LIST,
  NUMBER,
  OBJECT,
  oneOf as words,
  recordReader,
  TEXT,
  type ValueRule,
} from "../record.ts";

/** A JSON Schema (2020-12). */
export type Schema = boolean | { readonly [key: string]: unknown };

/** Checks one JSON value; `place` is its path in the file. */
export interface Rule<T> {
  (value: unknown, place: Place): T;
  /** The same rule for editors. */
  readonly schema: Schema;
}

/** Makes a rule. */
function rule<T>(schema: Schema, check: (value: unknown, place: Place) => T): Rule<T> {
  return Object.assign(check, { schema });
}

/** Where a value stands. */
export interface Place {
  readonly file: string;
  readonly path: string;
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function refuse(place: Place, wanted: string, value: unknown): never {
  throw new FormatError(`must be ${wanted}, and is ${show(value)}`, {
    file: place.file,
    place: place.path,
  });
}

/** A value of one rule, and what says the same to an editor. */
function plain<T>(schema: Schema, { wanted, accepts }: ValueRule<T>): Rule<T> {
  return rule(schema, (value, place) => accepts(value) ? value : refuse(place, wanted, value));
}

/** A string. */
export const text: Rule<string> = plain({ type: "string" }, TEXT);

/** A finite number. */
export const number: Rule<number> = plain({ type: "number" }, NUMBER);

/** true or false. */
export const flag: Rule<boolean> = plain({ type: "boolean" }, FLAG);

/** Whatever JSON can say. */
export const anything: Rule<unknown> = rule(true, (value) => value);

/** One of the listed strings. */
export function oneOf<T extends string>(...allowed: readonly T[]): Rule<T> {
  const wanted = `one of ${allowed.map((item) => `"${item}"`).join(", ")}`;
  return plain({ enum: allowed }, words(allowed, wanted));
}

/** The first rule that accepts. */
export function either<A, B>(
  first: Rule<A>,
  { second, wanted }: { readonly second: Rule<B>; readonly wanted: string },
): Rule<A | B> {
  return rule({ anyOf: [first.schema, second.schema] }, (value, place) => {
    try {
      return first(value, place);
    } catch {
      try {
        return second(value, place);
      } catch {
        return refuse(place, wanted, value);
      }
    }
  });
}

/** A string, or an object or list that obeys `other`; what is wrong in that is said as its rule says it. */
export function textOr<T>(other: Rule<T>, allowed?: string): Rule<string | T> {
  const words = allowed === undefined ? text : oneOf(allowed);
  return rule<string | T>(
    { anyOf: [words.schema, other.schema] },
    (value, place) => typeof value === "string" ? words(value, place) : other(value, place),
  );
}

/** A list of values that each obey `rule`. */
export function list<T>(item: Rule<T>): Rule<readonly T[]> {
  return rule({ type: "array", items: item.schema }, (value, place) => {
    if (!LIST.accepts(value)) return refuse(place, LIST.wanted, value);
    return value.map((one, index) => item(one, { ...place, path: `${place.path}[${index}]` }));
  });
}

/** A value that obeys `item`, or a list of them, tried in their order. */
export function oneOrMore<T>(item: Rule<T>): Rule<T | readonly T[]> {
  const many = list(item);
  return rule<T | readonly T[]>(
    { anyOf: [item.schema, many.schema] },
    (value, place) => Array.isArray(value) ? many(value, place) : item(value, place),
  );
}

/** An object with free keys. */
export function table<T>(item: Rule<T>): Rule<Readonly<Record<string, T>>> {
  return rule({ type: "object", additionalProperties: item.schema }, (value, place) => {
    const entries = Object.entries(objectOf(value, place));
    return Object.fromEntries(entries.map(([key, one]) => [key, item(one, join(place, key))]));
  });
}

/** A rule for a key that may be absent. */
export interface Optional<T> {
  readonly optional: true;
  readonly rule: Rule<T>;
}

/** Marks a key of `record` as optional. */
export function optional<T>(rule: Rule<T>): Optional<T> {
  return { optional: true, rule };
}

/** What `record` makes of its fields. */
export type Fields<F> =
  & { readonly [K in keyof F as F[K] extends Optional<unknown> ? never : K]: Checked<F[K]> }
  & { readonly [K in keyof F as F[K] extends Optional<unknown> ? K : never]?: Checked<F[K]> };

type Checked<R> = R extends Optional<infer T> ? T : R extends Rule<infer T> ? T : never;

/** An object with exactly these keys; an unknown one is refused and the known ones are listed. */
export function record<F extends Record<string, Rule<unknown> | Optional<unknown>>>(
  fields: F,
): Rule<Fields<F>> {
  return rule(recordSchema(fields), (value, place) => {
    const fail = (key: string, message: string): never => {
      throw new FormatError(message, { file: place.file, place: join(place, key).path });
    };
    const readFields = recordReader<Rule<unknown> | Optional<unknown>>({
      unknown: (key, known) => fail(key, `is not a known key: known are ${known}`),
      absent: (key, field) => typeof field === "function" ? fail(key, "is missing") : undefined,
      read: (key, one, field) => ruleOf(field)(one, join(place, key)),
    });
    return readFields(objectOf(value, place), fields) as Fields<F>;
  });
}

function ruleOf(field: Rule<unknown> | Optional<unknown>): Rule<unknown> {
  return typeof field === "function" ? field : field.rule;
}

function recordSchema(fields: Readonly<Record<string, Rule<unknown> | Optional<unknown>>>): Schema {
  const entries = Object.entries(fields);
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([key, field]) => [key, ruleOf(field).schema])),
    required: entries.filter(([, field]) => typeof field === "function").map(([key]) => key),
    additionalProperties: false,
  };
}

function join(place: Place, key: string): Place {
  return { file: place.file, path: place.path === "" ? key : `${place.path}.${key}` };
}

function objectOf(value: unknown, place: Place): Readonly<Record<string, unknown>> {
  return OBJECT.accepts(value) ? value : refuse(place, OBJECT.wanted, value);
}
