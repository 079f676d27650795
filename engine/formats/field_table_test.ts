import { assertEquals, assertThrows } from "@std/assert";
import { UnsupportedError } from "../errors.ts";
import { checkFields, type FieldTable, useOf } from "./field_table.ts";

const AT = { file: "folder", place: "x.json" };
const TABLE: FieldTable = {
  a: "read",
  b: { only: ["one", false] },
  "c_*": { harmless: "a test" },
  d: { idle: "nothing does it" },
};

Deno.test("a field is read, refused by name, harmless, or told", () => {
  assertEquals(checkFields({ a: 3, b: "one", c_x: [1], d: 0 }, TABLE, AT), []);
  assertEquals(checkFields({ d: 2, e: 1 }, TABLE, AT), [
    "x.json: d has no effect: nothing does it",
    "x.json: e is not understood and has no effect",
  ]);
  for (const value of [true, "two", 0, NaN, [1], { a: 1 }]) {
    assertThrows(() => checkFields({ b: value }, TABLE, AT), UnsupportedError, "folder, x.json, b");
  }
});

Deno.test("what is null or empty asks for nothing", () => {
  for (const value of [null, "", [], {}]) {
    assertEquals(checkFields({ a: value, b: value, d: value, e: value }, TABLE, AT), []);
  }
});

Deno.test("names of a table stand for themselves before patterns do", () => {
  const table: FieldTable = { "*": { harmless: "rest" }, "a.b": "read" };
  assertEquals(useOf(table, "a.b"), "read");
  assertEquals(useOf(table, "axb"), { harmless: "rest" });
  assertEquals(useOf({ "a.b*": "read" }, "axb"), undefined);
});
