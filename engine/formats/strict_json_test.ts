import { assertEquals, assertFalse, assertThrows } from "@std/assert";
import { FormatError } from "../errors.ts";
import { asObject, parseJson, parseStrictJson } from "./strict_json.ts";

function parse(text: string) {
  return parseStrictJson(new TextEncoder().encode(text), "f.json");
}

Deno.test("parseStrictJson() gives what JSON.parse gives for sound documents", () => {
  for (
    const text of [
      '{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]}',
      '{"a":"a","b":"\\"a\\":1,","c\\\\":1}',
      '{"a":"x\\",\\"a\\":1,\\"a\\":2"}',
      "[1, 2.5, null, true]",
      '"text"',
      ' { "x" : { } , "y" : [ ] } ',
    ]
  ) {
    assertEquals(parse(text), JSON.parse(text));
  }
});

Deno.test("a doubled key is an error in any object, also when one is written with escapes", () => {
  for (
    const text of [
      '{"a":1,"a":2}',
      '{"x":{"b":1,"c":2,"b":3}}',
      '[{"a":1,"\\u0061":2}]',
      '{"__proto__":1,"__proto__":2}',
    ]
  ) {
    assertThrows(() => parse(text), FormatError, "twice");
  }
});

Deno.test("parseStrictJson() refuses depth, bad syntax and bad UTF-8", () => {
  assertThrows(() => parse("[".repeat(1e6)), FormatError, "deeper than 64");
  for (const text of ["", "{", '{"a":1}}', '{"a"', '"', '{"a\\', "{a:1}", "[1,]"]) {
    assertThrows(() => parse(text), FormatError, "not valid JSON");
  }
  assertThrows(() => parseStrictJson(Uint8Array.of(0x22, 0xff, 0x22), "f"), FormatError, "UTF-8");
});

Deno.test("errors are one line also where the text quoted in them is not", () => {
  const error = assertThrows(() => parse('{\n"a":\nx}'), FormatError, "not valid JSON");
  assertFalse(error.message.includes("\n"));
});

Deno.test("asObject() takes objects only", () => {
  assertEquals(asObject({ a: 1 }), { a: 1 });
  for (const value of [null, [1], "x", 3, undefined, new Float32Array(1)]) {
    assertEquals(asObject(value), undefined);
  }
});

// What Python's json.loads gives for the same texts.
Deno.test("numbers that are none are read as Python writes them, everything else as ever", () => {
  assertEquals(parse('{"a":Infinity,"b":[-Infinity,NaN],"c":"NaN, -Infinity","d\\"NaN":1e3}'), {
    a: Infinity,
    b: [-Infinity, NaN],
    c: "NaN, -Infinity",
    'd"NaN': 1000,
  });
  assertEquals(parse("NaN"), NaN);
  assertEquals(parse('[NaN, "NaN~", "NaN"]'), [NaN, "NaN~", "NaN"]);
  for (
    const text of [
      ...["{NaN:1}", "[-NaN]", "[+Infinity]", "[1Infinity]", "[Infinity5]", "[NaN NaN]", "nan"],
      ...["[infinity]", "[inf]", "[--Infinity]", '{"a":Infinity', "[NaN,]", "[1.Infinity]"],
    ]
  ) {
    assertThrows(() => parse(text), FormatError, "not valid JSON");
  }
});

Deno.test("what to do depends on whether the text is cut short", () => {
  const at = { file: "f.json", place: "p" };
  for (const text of ['{"a": 1', '{"a": "tex', "", "[1,"]) {
    assertThrows(() => parseJson(text, at), FormatError, "cut short: fetch it again");
  }
  for (const text of ["{'a': 1}", '{"a": 1,}', '{"a": NaN, b}']) {
    const { message } = assertThrows(() => parseJson(text, at), FormatError, "f.json, p: ");
    assertFalse(message.includes("cut short"), message);
  }
});
