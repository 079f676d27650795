// Schemas: each keyword by texts that must be read and texts that must not, what is refused and how it is named, and
// sizes that must not blow up. Expected texts of the first tests were judged by Python's jsonschema.

import { assertEquals, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../../../errors.ts";
import { createConstraint } from "../constraint.ts";
import { compileSchema } from "./compile.ts";
import { checkSchema, type SchemaCase, schemaCases } from "../../../../tools/fixtures/schemas.ts";
import { fixturePath, readFixture } from "../../../../tests/support/fixtures.ts";
import { allowed, END, reads, tokenizerOf } from "../../../../tests/support/grammars.ts";

for (const { name, run } of schemaCases(fixturePath("decoding"))) {
  Deno.test(`schema of ${name}`, () => void run!());
}

for (const report of ["pc-json-02", "pc-json-04", "pc-json-06"]) {
  const { cases } = JSON.parse(readFixture(`public/${report}/expected.json`)) as {
    cases: (SchemaCase & { name: string })[];
  };
  for (const one of cases) Deno.test(`${report}: ${one.name}`, () => checkSchema(one));
}

function read(schema: unknown, ...texts: readonly string[]): boolean[] {
  const grammar = compileSchema(schema);
  return texts.map((text) => reads(grammar, text));
}

const closed = (properties: Readonly<Record<string, unknown>>) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

Deno.test("white space is read where a person puts it, and does not go on for ever", () => {
  const schema = closed({ a: { type: "array", items: { type: "integer" } } });
  const spaced = JSON.stringify({ a: [1, 2] }, null, 2);
  assertEquals(read(schema, spaced, ' {"a": [1, 2]}', '{"a":[]}', '{"a":  [1]}', '{"a":[1]} '), [
    ...[true, true, true, false, false],
  ]);
});

Deno.test("a member is there once, whatever its name", () => {
  const schema = { type: "object", properties: { a: {} }, minProperties: 2 };
  assertEquals(
    read(schema, '{"a":1,"b":1}', '{"a":1,"a":1}', '{"b":1,"b":2}', '{"b":1,"\\n":2,"a":3}', "{}"),
    [true, false, false, true, false],
  );
});

Deno.test("integers within the safe ones, as zod writes them, take no states to speak of", () => {
  const { MIN_SAFE_INTEGER: minimum, MAX_SAFE_INTEGER: maximum } = Number;
  const schema = { type: "integer", minimum, maximum };
  const texts = ["0", "-7", `${maximum}`, `${minimum}`, "9007199254740992", "-9007199254740992"];
  assertEquals(read(schema, ...texts), [true, true, true, true, false, false]);
  const from = { type: "integer", minimum: 10_000_000_000, maximum };
  assertEquals(read(from, "10000000000", "9999999999", "123456789012345"), [true, false, true]);
});

Deno.test("numbers of enum beside bounds, and all numbers but some", () => {
  const some = { enum: [1, 2.5, 10, "x", null], minimum: 2, type: ["number", "null"] };
  assertEquals(read(some, "2.5", "10", "10.0", "null", "1", '"x"'), [
    ...[true, true, true, true, false, false],
  ]);
  const others = { type: "number", not: { enum: [1, 2] }, multipleOf: 0.5 };
  assertEquals(read(others, "1", "1.0", "1.5", "2", "12", "1.2"), [
    ...[false, false, true, false, true, false],
  ]);
});

Deno.test("JSON.stringify of numbers of every size is read", () => {
  const grammar = compileSchema({ type: "number" });
  const whole = compileSchema({ type: "integer" });
  for (let exponent = -324; exponent <= 308; exponent += 4) {
    for (const mantissa of [1, -1.5, 9.999999999999999, 1.7976931348623157]) {
      const value = Number(`${mantissa}e${exponent}`);
      if (!Number.isFinite(value)) continue;
      const text = JSON.stringify(value);
      assertEquals(reads(grammar, text), true, text);
      assertEquals(reads(whole, text), Number.isInteger(value), text);
    }
  }
  for (const text of ["1e309", "1.8e308", "-1e999", "00", "1.", ".5", "+1", "1e"]) {
    assertEquals(reads(grammar, text), false, text);
  }
});

Deno.test("bounds of numbers hold to the last digit, and for texts that round to them", () => {
  const schema = { type: "number", exclusiveMaximum: 0.3, minimum: -1.25e-7 };
  assertEquals(
    read(schema, "0.3", "0.29999999999999999", "0.29999999999999993", "-1.25e-7", "-1.26e-7", "-0"),
    [false, false, true, true, false, true],
  );
});

Deno.test("not, if and dependencies hold, also on values of other types", () => {
  const condition = {
    properties: { kind: { enum: ["a", "b"] }, n: { type: "integer" } },
    required: ["kind"],
    if: { properties: { kind: { const: "a" } } },
    then: { required: ["n"] },
    else: { not: { required: ["n"] } },
  };
  assertEquals(read(condition, '{"kind":"a","n":1}', '{"kind":"a"}', '{"kind":"b"}', "3"), [
    ...[true, false, true, true],
  ]);
  assertEquals(read(condition, '{"n":1,"kind":"b"}', '{"n":1,"kind":"a"}'), [false, true]);
  const dependent = { dependentRequired: { a: ["b"] }, maxProperties: 2 };
  assertEquals(read(dependent, '{"a":1}', '{"b":1}', '{"a":1,"c":1}', '{"a":1,"b":2}'), [
    ...[false, true, false, true],
  ]);
});

Deno.test("exactly one of several, where several could hold", () => {
  const schema = {
    oneOf: [{ type: "integer", multipleOf: 2 }, { type: "integer", multipleOf: 3 }],
  };
  assertEquals(read(schema, "2", "3", "6", "7"), [true, true, false, false]);
  const members = { type: "object", oneOf: [{ required: ["a"] }, { required: ["b"] }] };
  assertEquals(read(members, '{"a":1}', '{"b":1}', '{"a":1,"b":1}', "{}"), [
    ...[true, true, false, false],
  ]);
});

Deno.test("one of two closed objects whose members overlap, and names that a pattern must not have", () => {
  const narrow = { properties: { a: { type: "integer" } }, additionalProperties: false };
  const wide = { properties: { a: {}, b: {} }, additionalProperties: { type: "null" } };
  const schema = { type: "object", oneOf: [narrow, wide] };
  assertEquals(
    read(schema, '{"a":1}', "{}", '{"a":"x"}', '{"b":1,"a":1}', '{"c":null,"a":1}', '{"c":1}'),
    [false, false, true, true, true, false],
  );
  const named = { not: { patternProperties: { "^x": { type: "integer" } } }, type: "object" };
  assertEquals(read(named, '{"x1":"a","y":1}', '{"x1":1,"x2":null}', '{"x1":1}', '{"y":"a"}'), [
    ...[true, true, false, false],
  ]);
});

Deno.test("what is left over is what no schema at the place has a say in", () => {
  const base = { $defs: { base: { properties: { a: {} }, patternProperties: { "^x": {} } } } };
  const schema = {
    ...{ ...base, $ref: "#/$defs/base", properties: { kind: { enum: ["b", "c"] } } },
    if: { properties: { kind: { const: "b" } }, required: ["kind"] },
    then: { properties: { b: {} } },
    anyOf: [{ required: ["d"], properties: { d: { type: "integer" } } }, { minProperties: 1 }],
    unevaluatedProperties: { type: "null" },
  };
  assertEquals(
    read(
      schema,
      ...['{"a":1,"x1":2,"kind":"c"}', '{"kind":"b","b":1}', '{"kind":"c","b":1}', '{"d":1}'],
      ...['{"d":"no"}', '{"d":null}', '{"kind":"c","b":null}'],
    ),
    [true, true, false, true, false, true, true],
  );
  const items = {
    prefixItems: [{}],
    oneOf: [{ prefixItems: [{}, { const: 1 }] }, { maxItems: 1 }],
  };
  assertEquals(read({ ...items, unevaluatedItems: false }, '["a",1]', '["a"]', '["a",1,2]'), [
    ...[true, false, false], // one item fits both
  ]);
});

Deno.test("of many objects one is told by a member of its own, or by one that the others must not have", () => {
  const kinds = Array.from({ length: 40 }, (_, i) => ({
    properties: { kind: { const: `k${i}` }, [`value${i % 3}`]: { type: "integer" } },
    additionalProperties: i % 2 === 0,
  }));
  const reference = {
    type: "object",
    required: ["$ref"],
    properties: { $ref: { type: "string" } },
  };
  const value = { type: "object", required: ["kind"], oneOf: kinds };
  const schema = { oneOf: [{ ...value, properties: { $ref: false } }, reference] };
  assertEquals(
    read(
      schema,
      ...['{"kind":"k1","value1":2}', '{"kind":"k1","value2":2}', '{"kind":"k2","more":2}'],
      ...['{"$ref":"a"}', '{"$ref":"a","kind":"k3"}', '{"kind":"k40"}'],
    ),
    [true, false, true, true, true, false],
  );
});

Deno.test("a schema of an older draft may refer to that draft's schema, and names formats that nobody reads", () => {
  const $schema = "http://json-schema.org/draft-07/schema#";
  const schema = { $schema, properties: { s: { $ref: $schema }, p: { format: "regex" } } };
  assertEquals(
    read(
      schema,
      '{"s":{"type":"string"}}',
      '{"s":{"type":"strng"}}',
      '{"s":{"minItems":-1}}',
      '{"p":"("}',
    ),
    [true, false, false, true],
  );
});

Deno.test("URI templates", () => {
  const texts = ["", "/a/{b}", "{+x,y:3}{?z*}", "%2f", "{", "{a", "%2", "a b", "{:1}"];
  assertEquals(read({ format: "uri-template" }, ...texts.map((text) => JSON.stringify(text))), [
    ...[true, true, true, true, false, false, false, false, false],
  ]);
});

Deno.test("items of a kind are counted, and equal ones found", () => {
  const schema = { type: "array", contains: { type: "integer" }, minContains: 2, maxContains: 3 };
  assertEquals(read(schema, "[1,2]", '[1,"a",2]', "[1]", "[1,2,3,4]", '["a"]'), [
    ...[true, true, false, false, false],
  ]);
  const unique = { type: "array", uniqueItems: true };
  assertEquals(read(unique, "[1,2]", "[1,1.0]", '[{"a":1,"b":2},{"b":2,"a":1}]', "[[],{}]"), [
    ...[true, false, false, true],
  ]);
});

Deno.test("a list of few values without equal ones does not begin what it cannot end", () => {
  const schema = { type: "array", items: { enum: ["r", "ra"] }, uniqueItems: true };
  const tokenizer = tokenizerOf(["[", "]", ",", '"', "r", "a"]);
  const constraint = createConstraint(compileSchema(schema), { tokenizer });
  for (const id of [0, 3, 4, 3, 2, 3, 4]) constraint.accept(id);
  assertEquals(allowed(constraint, tokenizer), ["a"]); // "r" was there
  constraint.accept(5);
  constraint.accept(3);
  assertEquals(allowed(constraint, tokenizer), ["]"]);
  constraint.accept(1);
  assertEquals([allowed(constraint, tokenizer), constraint.isComplete], [[END], true]);
});

Deno.test("large bounds compile and hold", () => {
  const schema = {
    type: "object",
    properties: {
      s: { type: "string", minLength: 1, maxLength: 2000 },
      l: { type: "array", items: { type: "integer", minimum: 0, maximum: 9 }, maxItems: 1000 },
      w: { type: "array", items: { $ref: "#/properties/l" }, minItems: 250, maxItems: 250 },
    },
    additionalProperties: false,
  };
  const texts = [2000, 2001].map((length) => JSON.stringify({ s: "é".repeat(length) }));
  const lists = [1000, 1001].map((length) => JSON.stringify({ l: Array(length).fill(7) }));
  const wide = [250, 249].map((length) => JSON.stringify({ w: Array(length).fill([1]) }));
  assertEquals(read(schema, ...texts, ...lists, ...wide), [true, false, true, false, true, false]);
});

Deno.test("an enum of thousands is read, and thousands of members in any order", () => {
  const values = Array.from({ length: 5000 }, (_, i) => `value ${i * 7919 % 10_000}`);
  assertEquals(read({ enum: values }, '"value 7919"', '"value 1"'), [
    true,
    values.includes("value 1"),
  ]);
  const names = Array.from({ length: 500 }, (_, i) => `name${i}`);
  const schema = closed(Object.fromEntries(names.map((name) => [name, { type: "null" }])));
  const text = (list: readonly string[]) => `{${list.map((name) => `"${name}":null`).join(",")}}`;
  assertEquals(read(schema, text(names), text(names.toReversed()), text(names.slice(1))), [
    ...[true, true, false],
  ]);
});

Deno.test("what no value can meet is an error with the path of what is asked for in vain", () => {
  for (
    const [schema, place] of [
      [false, "#"],
      [{ type: "integer", minimum: 5, maximum: 4 }, "#"],
      [closed({ a: { allOf: [{ type: "string" }, { type: "null" }] } }), "#/properties/a"],
      [{ type: "string", minLength: 3, maxLength: 2 }, "#"],
      [{ type: "string", pattern: "^a$", minLength: 2 }, "#"],
      [{ type: "array", items: false, minItems: 1 }, "#/items"],
      [
        { $ref: "#/$defs/a", $defs: { a: closed({ a: { $ref: "#/$defs/a" } }) } },
        "#/$defs/a/properties/a",
      ],
      [{ enum: [] }, "#"],
      [{ type: "array", items: { type: "boolean" }, uniqueItems: true, minItems: 3 }, "#"],
    ] as const
  ) {
    const message = `${place}: no value is allowed by the schema`;
    assertThrows(() => compileSchema(schema), FormatError, message);
  }
});

Deno.test("what is no schema is refused by its path", () => {
  for (
    const [schema, message] of [
      [3, "#: a schema is an object, true or false"],
      [undefined, "a schema is an object, true or false"],
      [{ type: "strng" }, '#/type: is no type: "strng"'],
      [{ properties: { a: { minimum: "1" } } }, "#/properties/a/minimum: is no number"],
      [{ maxLength: -1 }, "#/maxLength: is no whole number from 0 up"],
      [{ pattern: "(" }, '#/pattern: "(" is no regular expression: Unterminated group'],
      [{ required: "a" }, "#/required: is no list of texts"],
      [{ anyOf: [] }, "#/anyOf: is an empty list"],
      [{ properties: { a: 1 } }, "#/properties/a: a schema is an object, true or false"],
      [{ items: { $ref: "#/$defs/x" } }, "#/items/$ref: #/$defs/x refers to nothing"],
      [{ $ref: "#" }, "#: refers to itself and says nothing else"],
      [
        {
          $ref: "#/$defs/a",
          $defs: { a: { anyOf: [{ $ref: "#/$defs/b" }] }, b: { $ref: "#/$defs/a" } },
        },
        "refers to itself and says nothing else",
      ],
      [{ multipleOf: 0 }, "#/multipleOf: is not above 0"],
    ] as const
  ) assertThrows(() => compileSchema(schema), FormatError, message);
});

Deno.test("what is not supported is refused by its path", () => {
  for (
    const [schema, message] of [
      [
        { $ref: "https://example.com/a.json" },
        "#/$ref: https://example.com/a.json lies in another",
      ],
      [{ pattern: "(a)\\1" }, '#/pattern: the pattern "(a)\\\\1" has a reference to a group'],
      [{ pattern: "a(?=b)c" }, "an assertion that does not look from an end of the text"],
      [{ pattern: "\\bfoo" }, "has a word boundary"],
      [{ items: { format: "iri" } }, "#/items/format: format iri is not supported"],
      [{ properties: { a: { not: { uniqueItems: true } } } }, "#/properties/a/not/uniqueItems"],
      [
        { contains: { const: 1 }, unevaluatedItems: false },
        "#/unevaluatedItems: beside contains it hangs on the items",
      ],
      [{ items: { format: "regex" } }, "#/items/format: format regex is not supported"],
      [{ $schema: "https://example.com/dialect" }, "#/$schema: the dialect"],
      [{ multipleOf: 0.123456789 }, "#/multipleOf: multiples of 0.123456789 are not counted"],
    ] as const
  ) assertThrows(() => compileSchema(schema), UnsupportedError, message);
});

Deno.test("names of machines have labels of 63 characters and 253 in all", () => {
  const label = "a".repeat(63), all = `${label}.${label}.${label}.${label.slice(2)}`;
  const texts = ["a", "a-b.example", label, all, `a${label}`, `${all}a`, "-a", "a-", "a..b", ""];
  const quoted = texts.map((text) => JSON.stringify(text));
  const expected = [true, true, true, true, false, false, false, false, false, false];
  assertEquals(read({ format: "hostname", type: "string" }, ...quoted), expected);
  const bounded = { format: "hostname", type: "string", minLength: 2, maxLength: 63 };
  assertEquals(read(bounded, ...quoted.slice(0, 4)), [false, true, true, false]);
});

Deno.test("schemas that would take all time, memory or stack are refused by name", () => {
  const nested = (depth: number) => {
    let schema: unknown = { type: "string" };
    for (let i = 0; i < depth; i++) schema = { properties: { a: schema } };
    return schema;
  };
  const $defs = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, i) => [`a${i}`, { $ref: `#/$defs/a${i + 1}` }]),
  );
  // An automaton of 2²⁰ states, and one that counts to the product of the first primes.
  const wide = "(a|b)*a(a|b){20}", primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
  const counting = primes.map((prime, i) => `${i.toString(16)}(?:x{${prime}})*`).join("|");
  for (
    const [schema, message] of [
      [nested(4000), "a schema is nested too deeply"],
      [{ $ref: "#/$defs/a0", $defs: { ...$defs, a20000: { type: "string" } } }, "too deeply"],
      [{ type: "string", pattern: wide, minLength: 100 }, "too large for bounds"],
      [{ type: "string", pattern: `^(?:${counting})$`, minLength: 1e9 }, "too large for bounds"],
      [{ type: "string", pattern: "^a{9000}$", maxLength: 1e6 }, "too large for bounds"],
      [{ patternProperties: { [`^${wide}$`]: { type: "integer" } } }, "40000 states"],
      [{ propertyNames: { pattern: `^${wide}$` } }, "16384 states"],
    ] as const
  ) assertThrows(() => compileSchema(schema), UnsupportedError, message);
});

Deno.test("a name of half a million characters is read as others are", () => {
  const name = "x".repeat(500_000);
  const grammar = compileSchema({
    ...{ type: "object", properties: { [name]: { type: "null" } }, additionalProperties: false },
  });
  assertEquals(reads(grammar, "{}"), true);
  assertEquals(reads(grammar, '{"y":null}'), false);
});
