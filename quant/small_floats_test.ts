import { assert, assertEquals } from "@std/assert";
import {
  decodeSmallFloat,
  encodeSmallFloat,
  isSmallFloat,
  type SmallFloat,
} from "./small_floats.ts";

// Name, codes in use, largest finite value, smallest above 0, code of NaN, what overflow gives.
const FORMATS: readonly (readonly [SmallFloat, number, number, number, number, number])[] = [
  ["f8e4m3fn", 256, 448, 2 ** -9, 0x7f, NaN],
  ["f8e4m3fnuz", 256, 240, 2 ** -10, 0x80, NaN],
  ["f8e5m2", 256, 57344, 2 ** -16, 0x7f, Infinity],
  ["f8e5m2fnuz", 256, 57344, 2 ** -17, 0x80, NaN],
  ["f4e2m1", 16, 6, 0.5, 8, 6],
];

for (const [name, codes, largest, least, nan, overflow] of FORMATS) {
  const values = Array.from({ length: codes }, (_, code) => decodeSmallFloat(name, code));
  const finite = values.filter(Number.isFinite);

  Deno.test(`${name}: range, NaN and overflow are those of its definition`, () => {
    assert(isSmallFloat(name));
    assertEquals([Math.max(...finite), Math.min(...finite)], [largest, -largest]);
    assertEquals(Math.min(...finite.filter((value) => value > 0)), least);
    assertEquals(encodeSmallFloat(name, NaN), nan);
    const beyond = encodeSmallFloat(name, 1e9, { saturate: false });
    if (name !== "f4e2m1") assertEquals(decodeSmallFloat(name, beyond), overflow);
    for (const value of [1e9, Infinity]) {
      assertEquals(decodeSmallFloat(name, encodeSmallFloat(name, value)), largest);
      assertEquals(decodeSmallFloat(name, encodeSmallFloat(name, -value)), -largest);
    }
  });

  Deno.test(`${name}: every finite code comes back, and what lies between goes to the nearest`, () => {
    values.forEach((value, code) => {
      if (Number.isFinite(value)) assertEquals(encodeSmallFloat(name, value), code);
    });
    for (let i = 0; i < 2000; i++) {
      const value = (i % 2 ? -1 : 1) * largest * Math.exp(-i / 150);
      const error = Math.abs(decodeSmallFloat(name, encodeSmallFloat(name, value)) - value);
      assertEquals(error, Math.min(...finite.map((other) => Math.abs(other - value))));
    }
  });

  Deno.test(`${name}: a tie goes to the even code`, () => {
    const ascending = values.map((value, code) => ({ value, code }))
      .filter(({ value }) => value >= 0 && value <= largest && !Object.is(value, -0))
      .sort((a, b) => a.value - b.value);
    for (let i = 0; i + 1 < ascending.length; i++) {
      const [low, high] = [ascending[i]!, ascending[i + 1]!];
      const code = encodeSmallFloat(name, (low.value + high.value) / 2);
      assertEquals(code, low.code % 2 === 0 ? low.code : high.code);
    }
  });
}

Deno.test("f8e8m0 holds powers of two alone, rounded as asked", () => {
  for (const exponent of [-127, -1, 0, 5, 127]) {
    const code = encodeSmallFloat("f8e8m0", 2 ** exponent);
    assertEquals(decodeSmallFloat("f8e8m0", code), 2 ** exponent);
  }
  const rounded = (value: number, round: "up" | "down" | "nearest") =>
    decodeSmallFloat("f8e8m0", encodeSmallFloat("f8e8m0", value, { round }));
  assertEquals([rounded(5, "up"), rounded(5, "down"), rounded(5, "nearest")], [8, 4, 4]);
  assertEquals([rounded(6, "nearest"), rounded(4, "up")], [8, 4]);
  assertEquals(encodeSmallFloat("f8e8m0", NaN), 0xff);
  assertEquals(encodeSmallFloat("f8e8m0", Infinity, { saturate: false }), 0xff);
  assertEquals(isSmallFloat("f16"), false);
});
