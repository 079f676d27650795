// Random schemas, and random walks through what their grammars allow: every walk can go on until it ends, and what it
// wrote is valid by a validator that knows nothing of grammars.

import { assertEquals } from "@std/assert";
import { createConstraint } from "../constraint.ts";
import { compileSchema } from "./compile.ts";
import { tokenizerOf } from "../../../../tests/support/grammars.ts";

type Schema = Readonly<Record<string, unknown>>;

/** Numbers from 0 to `below`, the same for a seed. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = Math.imul(state, 0x5bd1e995) + 0x3c6ef372 >>> 0;
    return (state >>> 8) % below;
  };
}

function schemaOf(roll: (below: number) => number, depth: number): Schema {
  const below = () => schemaOf(roll, depth - 1);
  switch (roll(depth > 0 ? 8 : 4)) {
    case 0: {
      const minimum = roll(200) - 100;
      return { type: "integer", minimum, maximum: minimum + roll(300) };
    }
    case 1: {
      const minLength = roll(3);
      return { type: "string", minLength, maxLength: minLength + roll(4) };
    }
    case 2:
      return { enum: [null, true, -1.5, "a", "ab", '"\\'].slice(roll(3), 4 + roll(3)) };
    case 3:
      return { type: ["boolean", "null"] };
    case 4:
      return { anyOf: [below(), below()] };
    case 5: {
      const minItems = roll(3);
      return { type: "array", items: below(), minItems, maxItems: minItems + roll(3) };
    }
    default: {
      const names = ["a", "ab", "b", "c"].slice(0, 1 + roll(4));
      return {
        type: "object",
        properties: Object.fromEntries(names.map((name) => [name, below()])),
        required: names.filter(() => roll(2) === 0),
        additionalProperties: false,
      };
    }
  }
}

function isValid(schema: Schema, value: unknown): boolean {
  const { anyOf, type, items, properties } = schema;
  if (anyOf) return (anyOf as Schema[]).some((one) => isValid(one, value));
  if (schema.enum) return (schema.enum as unknown[]).includes(value);
  if (type === "integer") {
    const [low, high] = [schema.minimum as number, schema.maximum as number];
    return Number.isInteger(value) && (value as number) >= low && (value as number) <= high;
  }
  if (type === "string") {
    const length = typeof value === "string" ? [...value].length : -1;
    return length >= (schema.minLength as number) && length <= (schema.maxLength as number);
  }
  if (type === "array") {
    return Array.isArray(value) && value.length >= (schema.minItems as number) &&
      value.length <= (schema.maxItems as number) &&
      value.every((item) => isValid(items as Schema, item));
  }
  if (type === "object") {
    const own = properties as Readonly<Record<string, Schema>>;
    return typeof value === "object" && value !== null && !Array.isArray(value) &&
      (schema.required as string[]).every((name) => Object.hasOwn(value, name)) &&
      Object.entries(value).every(([name, one]) =>
        Object.hasOwn(own, name) && isValid(own[name]!, one)
      );
  }
  return value === null || typeof value === "boolean";
}

const TEXTS = [
  ...Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)),
  ...[
    '{"',
    '":',
    '","',
    '"}',
    "},",
    "[[",
    "]]",
    "true",
    "null",
    "ab",
    '"a',
    "12",
    "-1",
    ': "',
    "\\u",
  ],
];

Deno.test("random walks end, and write what is valid", () => {
  const tokenizer = tokenizerOf(TEXTS);
  for (let seed = 1; seed <= 60; seed++) {
    const roll = dice(seed);
    const schema = schemaOf(roll, 2);
    const constraint = createConstraint(compileSchema(schema), { tokenizer });
    let bytes = "";
    for (let steps = 0; !constraint.isComplete; steps++) {
      assertEquals(steps < 3000, true, `no end of ${JSON.stringify(schema)}`);
      const mask = constraint.mask();
      const ids = TEXTS.map((_, id) => id).filter((id) => mask[id >> 5]! >> (id & 31) & 1);
      if (constraint.canEnd && (ids.length === 0 || roll(3) === 0)) break;
      const id = ids[roll(ids.length)]!;
      constraint.accept(id);
      bytes += TEXTS[id];
    }
    const text = new TextDecoder("utf-8", { fatal: true })
      .decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
    assertEquals(isValid(schema, JSON.parse(text)), true, `${text} of ${JSON.stringify(schema)}`);
  }
});
