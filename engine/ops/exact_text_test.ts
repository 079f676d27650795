import { assertEquals } from "@std/assert";
import { exactText } from "./exact_text.ts";

Deno.test("the text of values is equal where they are the same, and else is not", () => {
  const values = [
    0,
    -0,
    NaN,
    Infinity,
    -Infinity,
    null,
    0n,
    1n,
    1,
    "0",
    "-0",
    "NaN",
    [0],
    [-0],
    [],
    {
      a: -0,
    },
    { a: 0 },
  ];
  assertEquals(new Set(values.map(exactText)).size, values.length);
  assertEquals(exactText([1 / 3, NaN, -0, 2n]), exactText([1 / 3, -NaN, -1 * 0, BigInt(2)]));
});
