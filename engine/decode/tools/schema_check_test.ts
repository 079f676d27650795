// What is said of arguments that a schema refuses. What each keyword means is JSON Schema's (draft 2020-12).

import { assertEquals } from "@std/assert";
import { problemOf } from "./schema_check.ts";

Deno.test("the first difference is named by its path and what is asked for", () => {
  const schema = {
    type: "object",
    properties: {
      size: { enum: ["S", "M"] },
      counts: { type: "array", items: { type: "integer", minimum: 1 }, maxItems: 3 },
      pair: { prefixItems: [{ type: "string" }, { type: "number" }], items: false },
      either: { anyOf: [{ type: "null" }, { type: "string", minLength: 2 }] },
      all: { allOf: [{ minimum: 2 }, { exclusiveMaximum: 4 }] },
      next: { $ref: "#/$defs/a~1b" },
      fixed: { const: { a: 1 } },
    },
    required: ["size"],
    additionalProperties: false,
    $defs: { "a/b": { type: ["boolean", "null"] } },
  };
  const cases: readonly (readonly [args: unknown, problem: string | undefined])[] = [
    [{ size: "S", counts: [1, 2], pair: ["a", 1.5], either: null, all: 2, next: true }, undefined],
    [{ size: "S", fixed: { a: 1 } }, undefined],
    [3, "arguments must be of type object: got 3"],
    [{}, "arguments.size is missing"],
    [{ size: "L" }, 'arguments.size must be one of "S", "M": got "L"'],
    [{ size: "S", more: 1 }, "arguments.more must be left out"],
    [{ size: "S", counts: [1, 0] }, "arguments.counts[1] breaks minimum 1: got 0"],
    [{ size: "S", counts: [1.5] }, "arguments.counts[0] must be of type integer: got 1.5"],
    [{ size: "S", counts: [1, 1, 1, 1] }, "arguments.counts breaks maxItems 3: got [1,1,1,1]"],
    [{ size: "S", pair: ["a", 1, 2] }, "arguments.pair[2] must be left out"],
    [{ size: "S", either: "a" }, 'arguments.either must be of type null: got "a"'],
    [{ size: "S", all: 4 }, "arguments.all breaks exclusiveMaximum 4: got 4"],
    [{ size: "S", next: 1 }, "arguments.next must be of type boolean or null: got 1"],
    [{ size: "S", fixed: {} }, 'arguments.fixed must be one of {"a":1}: got {}'],
  ];
  for (const [args, problem] of cases) assertEquals(problemOf(args, schema), problem);
});
