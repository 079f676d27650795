// Masks beside their definition: a token is in the mask where reading its bytes along the grammar does not fail. Random
// texts of schemas that count, look names up, look back and nest, with tokens that go over the ends of parts.

import { assertEquals } from "@std/assert";
import { createConstraint } from "./constraint.ts";
import { type Grammar, inOrder, literal, until } from "./grammar.ts";
import { compileGbnf } from "./gbnf.ts";
import { compileSchema } from "./schema/compile.ts";
import { tokenizerOf } from "../../../tests/support/grammars.ts";

const TOKENS = [
  ...Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)),
  ...[
    '{"',
    '":',
    '":"',
    '","',
    '"}',
    '"},',
    '"},{"',
    '"]',
    '"],',
    "},",
    "[[",
    "]]",
    '["',
    "[{",
    '""',
  ],
  ...[
    "true",
    "null",
    "ab",
    "abab",
    '"a',
    'a"',
    'b","a',
    "12",
    "-1",
    "1,",
    "0.5",
    ': "',
    "\\u",
    "\\n",
  ],
  ...[
    'a":1',
    'a":1,"b',
    '","ab"',
    '"a":"a"',
    "\xc3\xa9",
    "\xa9x",
    '\xc3\xa9"',
    "\n  ",
    ', "',
    "1]",
    "1],[",
  ],
];

const closed = (properties: object, required: readonly string[] = []) => ({
  ...{ type: "object", properties, required, additionalProperties: false },
});
const text = (more: object = {}) => ({ type: "string", ...more });

const GRAMMARS: Readonly<Record<string, () => Grammar>> = {
  "strings of bounded length": () =>
    compileSchema({ type: "array", items: text({ minLength: 2, maxLength: 7 }) }),
  "strings of a pattern and bounded length": () =>
    compileSchema({
      type: "array",
      items: text({ pattern: "^(ab)*é?$", minLength: 3, maxLength: 9 }),
    }),
  "an open object": () =>
    compileSchema({
      type: "object",
      properties: { a: { type: "integer" }, ab: {} },
      maxProperties: 4,
    }),
  "names of a pattern": () =>
    compileSchema({
      type: "object",
      propertyNames: { maxLength: 3 },
      additionalProperties: text(),
    }),
  "items that differ": () => compileSchema({ type: "array", items: text(), uniqueItems: true }),
  "numbers that differ": () =>
    compileSchema({ type: "array", items: { type: "number" }, uniqueItems: true }),
  "objects that differ": () =>
    compileSchema({
      type: "array",
      items: closed({ a: text(), b: text() }, ["a"]),
      uniqueItems: true,
    }),
  "arrays that differ": () =>
    compileSchema({
      type: "array",
      items: { type: "array", items: { type: "integer" } },
      uniqueItems: true,
    }),
  "values that differ": () =>
    compileSchema({ type: "array", items: { enum: ["a", "ab", 1, 12] }, uniqueItems: true }),
  "free text up to a mark": () => inOrder(until('"}'), literal("ab")),
  "a grammar of rules": () =>
    compileGbnf('root ::= item ("," item)*\nitem ::= "a" "b"? | "[" root "]"'),
};

for (const [name, make] of Object.entries(GRAMMARS)) {
  Deno.test(`the mask has what can be read: ${name}`, () => {
    const tokenizer = tokenizerOf(TOKENS), grammar = make();
    let seed = 5;
    const roll = (below: number) => {
      seed = Math.imul(seed, 0x5bd1e995) + 0x3c6ef372 >>> 0;
      return (seed >>> 8) % below;
    };
    for (let walk = 0; walk < 12; walk++) {
      const [masking, reading] = [0, 1].map(() => createConstraint(grammar, { tokenizer }));
      for (let step = 0; step < 30 && !reading!.isComplete; step++) {
        const mask = masking!.mask();
        const all = Array.from({ length: tokenizer.vocabSize }, (_, id) => id);
        const allowed = all.filter((id) => reading!.allows(id));
        const masked = all.filter((id) => mask[id >> 5]! >> (id & 31) & 1);
        const named = (ids: readonly number[]) => ids.map((id) => tokenizer.tokenText(id));
        assertEquals(named(masked), named(allowed));
        // Longer tokens more often, since they go over the ends of parts.
        const long = allowed.filter((id) => id >= 256 && id < TOKENS.length);
        const from = long.length > 0 && roll(3) > 0 ? long : allowed;
        const id = from[roll(from.length)]!;
        masking!.accept(id);
        reading!.accept(id);
      }
    }
  });
}
