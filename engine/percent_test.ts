import { assertEquals } from "@std/assert";
import { pathOf } from "./io.ts";
import { unescaped } from "./percent.ts";

Deno.test("escapes are read, and a text with others than those of UTF-8 is meant as it is", () => {
  // RFC 3986, section 2.5: "À" is %C3%80.
  assertEquals(unescaped("a%20%C3%80%2525"), "a À%25");
  for (const text of ["100%", "a%zz", "%E0%A4%A", "%C3", "b%20%"]) {
    assertEquals(unescaped(text), text);
  }
  assertEquals(pathOf("file:///a%20b"), "/a b");
  assertEquals(pathOf("file:///a%zz"), "/a%zz");
});
