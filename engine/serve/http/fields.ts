// Bodies of requests, checked by tables: what a field may be, and which of the engine's options it sets, is data. null is
// as if absent, as OpenAI's clients mean it. A field that nobody knows is refused where it looks like one that is
// misspelt; else it is read past and told in a header, since clients send fields that are newer than this server.

import { nearest } from "../../nearest.ts";
import { SAMPLER_OPTION_NAMES } from "../../decode/sampling/options.ts";
import type { ValueRule } from "../../record.ts";
import { ApiError, badRequest } from "./api_error.ts";
import { snakeCase } from "./engine_words.ts";

/** One field. */
export interface Field<T = unknown> {
  readonly rule: ValueRule<T>;
  /** The option of an answer that it sets. */
  readonly option?: string;
  /** Its value as the option wants it; as it is by default. */
  readonly to?: (value: T) => unknown;
  /** Why it cannot be used, except with a value in `harmless`. */
  readonly refused?: string;
  readonly harmless?: readonly unknown[];
}

/** Fields by name. */
// deno-lint-ignore no-explicit-any
export type FieldTable = Readonly<Record<string, Field<any>>>;

/** Values of a table's fields; those that are null are absent. */
export type Values<T extends FieldTable> = {
  readonly [K in keyof T]?: T[K] extends Field<infer V> ? V : never;
};

/** What was read of a body or a part of it. */
export interface Read<T extends FieldTable> {
  readonly values: Values<T>;
  /** Options that fields set, and the fields by option. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly names: ReadonlyMap<string, string>;
}

/** Where a table is applied. */
export interface ReadOptions {
  /** In front of names: `messages[2].`; nothing for a whole body. */
  readonly at?: string;
  /** Takes the paths of fields that nobody knows. */
  readonly unknown?: (path: string) => void;
}

/** A field of one's own. */
export function field<T>(rule: ValueRule<T>, more: Omit<Field<T>, "rule"> = {}): Field<T> {
  return { rule, ...more };
}

const ANYTHING: ValueRule = { wanted: "anything", accepts: (_value): _value is unknown => true };

/** A field that OpenAI's API has and this server has not. */
export function refused(reason: string, harmless: readonly unknown[] = []): Field {
  return { rule: ANYTHING, refused: reason, harmless };
}

/** Fields that are read past. */
export function ignored(names: readonly string[]): FieldTable {
  return Object.fromEntries(names.map((name) => [name, { rule: ANYTHING }]));
}

/** Every sampler option of the engine by its name in snake_case; the engine checks the values. */
export const SAMPLER_FIELDS: FieldTable = Object.fromEntries(
  [...SAMPLER_OPTION_NAMES].map((option) => [snakeCase(option), { rule: ANYTHING, option }]),
);

/**
 * Reads the fields of an object.
 *
 * @throws {ApiError} 400 that names the field.
 */
export function readFields<T extends FieldTable>(
  object: Readonly<Record<string, unknown>>,
  table: T,
  { at = "", unknown }: ReadOptions = {},
): Read<T> {
  const values: Record<string, unknown> = {};
  const options: Record<string, unknown> = {};
  const names = new Map<string, string>();
  for (const [name, value] of Object.entries(object)) {
    const path = at + name;
    const one = Object.hasOwn(table, name) ? table[name]! : undefined;
    if (!one) {
      refuseMisspelt(name, { table, path });
      unknown?.(path);
      continue;
    }
    if (value === null || value === undefined) continue;
    if (one.refused !== undefined) {
      if (one.harmless?.some((harmless) => isSame(harmless, value))) continue;
      throw new ApiError(400, `Cannot use ${path}: ${one.refused}`, {
        param: path,
        code: "unsupported_parameter",
      });
    }
    if (!one.rule.accepts(value)) throw wrong(path, { wanted: one.rule.wanted, value });
    values[name] = value;
    if (one.option === undefined) continue;
    const before = names.get(one.option);
    if (before !== undefined) throw badRequest(`Cannot use both ${before} and ${path}`, path);
    names.set(one.option, path);
    options[one.option] = one.to ? one.to(value) : value;
  }
  return { values: values as Values<T>, options, names };
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** The error for a value of the wrong kind. */
export function wrong(
  path: string,
  { wanted, value }: { readonly wanted: string; readonly value: unknown },
): ApiError {
  const kind = kindOf(value);
  const isInside = typeof value === "object" && value !== null && wanted.includes(kind);
  const what = isInside ? "not all of it is" : `is ${kind}`;
  return badRequest(`Cannot use ${path}: it must be ${wanted}, and ${what}`, path);
}

/** What a value is, in so few words that a log may have them. */
function kindOf(value: unknown): string {
  if (value === undefined) return "absent";
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object") return "an object";
  if (typeof value === "string") return value === "" ? "an empty text" : "a text";
  return String(value);
}

function refuseMisspelt(
  name: string,
  { table, path }: { readonly table: FieldTable; readonly path: string },
): void {
  const meant = name.length > 40 ? undefined : nearest(snakeCase(name), Object.keys(table));
  if (meant === undefined) return;
  throw new ApiError(400, `There is no field ${path}. Did you mean ${meant}?`, {
    param: path,
    code: "unknown_parameter",
  });
}

/** A plain object, or an error that says where. */
export function objectAt(value: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw wrong(path, { wanted: "an object", value });
}
