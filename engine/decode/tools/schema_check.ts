// Whether a call's arguments are what its tool's JSON Schema asks for, and in words that a model can act on if
// not. It judges by the keywords below and lets pass what it does not know: arguments that are held to the
// schema while they are written need no second judge, and a tool's own handler sees the rest.

import { unescaped } from "../../percent.ts";
import { OBJECT } from "../../record.ts";

type Schema = Readonly<Record<string, unknown>>;

interface Place {
  readonly path: string;
  readonly root: unknown;
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: Array.isArray,
  object: OBJECT.accepts,
};

/** Bounds: a keyword, what is measured, and whether it holds. */
const BOUNDS: readonly (readonly [
  keyword: string,
  measure: (value: unknown) => number | undefined,
  holds: (size: number, bound: number) => boolean,
])[] = [
  ["minimum", numberOf, (size, bound) => size >= bound],
  ["maximum", numberOf, (size, bound) => size <= bound],
  ["exclusiveMinimum", numberOf, (size, bound) => size > bound],
  ["exclusiveMaximum", numberOf, (size, bound) => size < bound],
  ["minLength", lengthOf, (size, bound) => size >= bound],
  ["maxLength", lengthOf, (size, bound) => size <= bound],
  ["minItems", itemsOf, (size, bound) => size >= bound],
  ["maxItems", itemsOf, (size, bound) => size <= bound],
];

/** The first thing in which a value differs from a schema, as a sentence; undefined if there is none. */
export function problemOf(
  value: unknown,
  schema: unknown,
  { path, root }: Place = { path: "arguments", root: schema },
): string | undefined {
  if (schema === false) return `${path} must be left out`;
  if (!OBJECT.accepts(schema)) return undefined;
  const here: Place = { path, root };
  if (typeof schema.$ref === "string") {
    const problem = problemOf(value, followed(schema.$ref, root), here);
    if (problem) return problem;
  }
  return wrongType(value, schema, path) ?? wrongWord(value, schema, path) ??
    wrongSize(value, schema, path) ?? wrongChoice(value, schema, here) ??
    (OBJECT.accepts(value) ? wrongMember(value, schema, here) : undefined) ??
    (Array.isArray(value) ? wrongItem(value, schema, here) : undefined);
}

function wrongType(value: unknown, { type }: Schema, path: string): string | undefined {
  const types = [type].flat().filter((name) => typeof name === "string");
  if (types.length === 0 || types.some((name) => TYPES[name]?.(value) ?? true)) return undefined;
  return `${path} must be of type ${types.join(" or ")}: got ${JSON.stringify(value)}`;
}

function wrongWord(value: unknown, schema: Schema, path: string): string | undefined {
  const words = Array.isArray(schema.enum) ? schema.enum : "const" in schema ? [schema.const] : [];
  const text = JSON.stringify(value);
  if (words.length === 0 || words.some((word) => JSON.stringify(word) === text)) return undefined;
  const known = words.map((word) => JSON.stringify(word)).join(", ");
  return `${path} must be one of ${known}: got ${text}`;
}

function wrongSize(value: unknown, schema: Schema, path: string): string | undefined {
  for (const [keyword, measure, holds] of BOUNDS) {
    const bound = schema[keyword], size = measure(value);
    if (typeof bound !== "number" || size === undefined || holds(size, bound)) continue;
    return `${path} breaks ${keyword} ${bound}: got ${JSON.stringify(value)}`;
  }
  return undefined;
}

function wrongChoice(value: unknown, schema: Schema, place: Place): string | undefined {
  for (const part of listOf(schema.allOf)) {
    const problem = problemOf(value, part, place);
    if (problem) return problem;
  }
  for (const choices of [listOf(schema.anyOf), listOf(schema.oneOf)]) {
    const problems = choices.map((choice) => problemOf(value, choice, place));
    if (choices.length > 0 && problems.every((problem) => problem)) return problems[0];
  }
  return undefined;
}

function wrongMember(
  value: Schema,
  schema: Schema,
  { path, root }: Place,
): string | undefined {
  const properties = OBJECT.accepts(schema.properties) ? schema.properties : {};
  const missing = listOf(schema.required).find((key) => !Object.hasOwn(value, key as string));
  if (missing !== undefined) return `${path}.${missing} is missing`;
  for (const [key, member] of Object.entries(value)) {
    const isKnown = Object.hasOwn(properties, key);
    if (!isKnown && OBJECT.accepts(schema.patternProperties)) continue;
    const rule = isKnown ? properties[key] : schema.additionalProperties;
    const problem = problemOf(member, rule, { path: `${path}.${key}`, root });
    if (problem) return problem;
  }
  return undefined;
}

function wrongItem(
  value: readonly unknown[],
  schema: Schema,
  { path, root }: Place,
): string | undefined {
  const first = listOf(schema.prefixItems);
  for (const [index, item] of value.entries()) {
    const rule = index < first.length ? first[index] : schema.items;
    const problem = problemOf(item, rule, { path: `${path}[${index}]`, root });
    if (problem) return problem;
  }
  return undefined;
}

/** What `#/$defs/…` names; anything where it names nothing. */
function followed(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return true;
  let at: unknown = root;
  for (const key of reference.slice(1).split("/").slice(1)) {
    const name = unescaped(key).replaceAll("~1", "/").replaceAll("~0", "~");
    at = OBJECT.accepts(at) && Object.hasOwn(at, name) ? at[name] : true;
  }
  return at;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function lengthOf(value: unknown): number | undefined {
  return typeof value === "string" ? [...value].length : undefined;
}

function itemsOf(value: unknown): number | undefined {
  return Array.isArray(value) ? value.length : undefined;
}
