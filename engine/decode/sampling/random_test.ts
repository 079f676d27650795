import { assert, assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { createRandom, nextBits, nextDouble } from "./random.ts";

Deno.test("seed 1 gives the doubles of the reference", () => {
  const state = createRandom(1);
  assertEquals(Array.from({ length: 4 }, () => nextDouble(state)), [
    0.7308781907032909,
    0.41008081149220166,
    0.20771484130971707,
    0.3327170559595112,
  ]);
});

Deno.test("seed 1 gives the floats of the reference", () => {
  const state = createRandom(1);
  for (const expected of [0.73087817, 0.10047317, 0.41008079]) {
    assertAlmostEquals(nextBits(state, 24) / 2 ** 24, expected, 1e-8);
  }
});

Deno.test("the two halves compute the 48-bit recurrence exactly", () => {
  for (const seed of [0, 1, -1, 42, 2 ** 48 - 1, 2 ** 48, Number.MAX_SAFE_INTEGER, -(2 ** 50)]) {
    const state = createRandom(seed);
    let bits = BigInt.asUintN(48, BigInt(seed) ^ 0x5DEECE66Dn);
    for (let i = 0; i < 1000; i++) {
      bits = BigInt.asUintN(48, bits * 0x5DEECE66Dn + 0xBn);
      const count = 1 + i % 32;
      assertEquals(nextBits(state, count), Number(bits >> BigInt(48 - count)));
    }
  }
});

Deno.test("a copied state continues alike", () => {
  const state = createRandom(7);
  nextDouble(state);
  const copy = { ...state };
  assertEquals(nextDouble(copy), nextDouble(state));
  assert(nextDouble(copy) < 1);
});

Deno.test("a seed that is no safe integer is refused", () => {
  assertThrows(() => createRandom(0.5), RangeError, "Cannot seed with 0.5");
  assertThrows(() => createRandom(NaN), RangeError);
  assertThrows(() => createRandom(2 ** 53), RangeError);
});
