import { assertEquals, assertThrows } from "@std/assert";
import { UnsupportedError } from "../../errors.ts";
import { ApiError } from "./api_error.ts";
import { keyCheck, parseKeys } from "./keys.ts";

const asked = (headers: Record<string, string>) => new Request("http://localhost/", { headers });

Deno.test("a request passes with any of the keys, in either header, and with no other text", () => {
  const check = keyCheck(["one", "two"]);
  for (const key of ["one", "two"]) {
    check(asked({ authorization: `Bearer ${key}` }));
    check(asked({ authorization: `bearer  ${key}` }));
    check(asked({ "x-api-key": key }));
  }
  const wrong: Record<string, string>[] = [
    {},
    { authorization: "one" },
    { authorization: "Basic one" },
    { authorization: "Bearer " },
    { authorization: "Bearer onetwo" },
    { authorization: "Bearer one two" },
    { "x-api-key": "" },
  ];
  for (const headers of wrong) {
    const error = assertThrows(() => check(asked(headers)), ApiError);
    assertEquals([error.status, error.details.code], [401, "invalid_api_key"]);
  }
});

Deno.test("without keys everybody may ask", () => {
  keyCheck()(asked({}));
  keyCheck([])(asked({ authorization: "Bearer any" }));
});

Deno.test("keys are read from lines and lists, without comments", () => {
  assertEquals(parseKeys("# mine\none\r\n two # here\nthree,four\n\n", "keys"), [
    ...["one", "two", "three", "four"],
  ]);
  assertThrows(() => parseKeys("# none\n", "keys"), UnsupportedError, "keys: has no API key");
  assertThrows(() => parseKeys("schlüssel", "keys"), UnsupportedError, "API key 1");
});
