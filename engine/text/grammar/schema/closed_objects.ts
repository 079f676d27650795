// Schemas as libraries write them. What zod's `object` reads may have members that it does not name, which its parse
// throws away; asked of a model, such a schema is an invitation to go on until the token limit. So objects that say
// nothing of other members are closed, as OpenAI's helpers do; one that says it takes some (`looseObject`) stays open.

type Json = Readonly<Record<string, unknown>>;

/** Keywords whose value is a schema or a list of some, and those whose members are schemas. */
const INNER = ["items", "prefixItems", "anyOf", "oneOf", "additionalProperties"];
const NAMED = ["properties", "$defs", "definitions"];

/**
 * The schema with its objects closed. Where parts hold together (`allOf`), closing each would leave nothing, so that such
 * a schema stays as it is.
 */
export function withClosedObjects(schema: Json): Json {
  return JSON.stringify(schema).includes('"allOf"') ? schema : closed(schema) as Json;
}

function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const all = Object.entries(schema as Json).map(([key, value]): [string, unknown] => {
    if (INNER.includes(key)) return [key, closed(value)];
    return [key, NAMED.includes(key) ? closedMembers(value as Json) : value];
  });
  const { properties, patternProperties } = schema as Json;
  const isOpen = !Object.hasOwn(schema, "additionalProperties") && patternProperties === undefined;
  return {
    ...Object.fromEntries(all),
    ...properties !== undefined && isOpen && { additionalProperties: false },
  };
}

function closedMembers(members: Json): Json {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, closed(value)]));
}
