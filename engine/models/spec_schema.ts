// The JSON Schema of spec files, for editors. It is made from the rules that check them, so the two cannot
// differ; what no schema can say (that a hyperparameter, kind or role of that name exists) `spec check` says.

import type { Schema } from "./check.ts";
import { specRule } from "./spec_rules.ts";

/** The schema as JSON. */
export function specSchema(): Schema {
  const whole = specRule.schema as { properties: Record<string, Schema>; required: string[] };
  const change = partial({ ...whole, required: [] });
  const { cases } = whole.properties;
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Model architecture",
    ...whole,
    properties: {
      $schema: { type: "string" },
      ...whole.properties,
      cases: withUse(cases!, { $ref: "#/$defs/change" }),
      containers: {
        type: "object",
        properties: { huggingface: { $ref: "#/$defs/change" }, gguf: { $ref: "#/$defs/change" } },
        additionalProperties: false,
      },
    },
    $defs: { change },
  };
}

/** The schema of a change that is merged over a spec: nothing is required, null takes a key away. */
function partial(schema: Schema): Schema {
  if (typeof schema === "boolean") return schema;
  const { type, anyOf, properties, additionalProperties } = schema as {
    type?: string;
    anyOf?: Schema[];
    properties?: Record<string, Schema>;
    additionalProperties?: Schema;
  };
  if (anyOf) return { anyOf: anyOf.map(partial) };
  if (type !== "object") return schema;
  return {
    type,
    ...properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([key, value]) => [key, orNull(partial(value))]),
      ),
    },
    additionalProperties: typeof additionalProperties === "object"
      ? orNull(partial(additionalProperties))
      : additionalProperties ?? true,
  };
}

function orNull(schema: Schema): Schema {
  return schema === true ? true : { anyOf: [schema, { type: "null" }] };
}

function withUse(cases: Schema, use: Schema): Schema {
  const { items, ...rest } = cases as { items: { properties: Record<string, Schema> } };
  return { ...rest, items: { ...items, properties: { ...items.properties, use } } };
}
