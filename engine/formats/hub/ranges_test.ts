import { assert, assertEquals, assertFalse } from "@std/assert";
import fc from "fast-check";
import { addRange, coveredBytes, gaps, isSound, type Range } from "./ranges.ts";

const SIZE = 40;

Deno.test("a list of ranges equals a set of bytes, and its gaps are the rest", () => {
  const range = fc.tuple(fc.nat(SIZE), fc.nat(SIZE)).map((
    [a, b],
  ): Range => [Math.min(a, b), Math.max(a, b)]);
  fc.assert(
    fc.property(fc.array(range, { maxLength: 12 }), (added) => {
      const bytes = new Set<number>();
      let ranges: Range[] = [];
      for (const [start, end] of added) {
        for (let i = start; i < end; i++) bytes.add(i);
        ranges = addRange(ranges, [start, end]);
      }
      assert(isSound(ranges, SIZE));
      assertEquals(coveredBytes(ranges), bytes.size);
      for (const [start, end] of ranges) {
        for (let i = start; i < end; i++) assert(bytes.has(i));
      }
      assertEquals(coveredBytes(gaps(ranges, SIZE)), SIZE - bytes.size);
      for (const gap of gaps(ranges, SIZE)) ranges = addRange(ranges, gap);
      assertEquals(ranges, [[0, SIZE]]);
    }),
    { seed: 5, numRuns: 500 },
  );
});

Deno.test("isSound() refuses what addRange() cannot make", () => {
  const bad: unknown[] = [
    [[0, 41]],
    [[5, 5]],
    [[7, 5]],
    [[0, 5], [5, 6]],
    [[6, 8], [0, 2]],
    [[-1, 3]],
    [[0.5, 3]],
    [[0]],
    {},
    undefined,
  ];
  for (const ranges of bad) assertFalse(isSound(ranges, SIZE), JSON.stringify(ranges));
  assert(isSound([], SIZE));
});
