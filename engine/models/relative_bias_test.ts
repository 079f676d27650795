import { assertEquals } from "@std/assert";
import { bucketOf, relativeBiasTable } from "./relative_bias.ts";

const T5 = { buckets: 32, farthest: 128 };

Deno.test("distances fall into the classes of the published T5, also at borders", () => {
  const table = (isBidirectional: boolean, distances: readonly number[]) =>
    distances.map((distance) => bucketOf(distance, { ...T5, isBidirectional }));
  assertEquals(
    table(true, [-200, -128, -127, -64, -32, -16, -11, -8, -1, 0, 1, 7, 8, 12, 16, 23, 32, 46, 64]),
    [15, 15, 15, 14, 12, 10, 8, 8, 1, 0, 17, 23, 24, 25, 26, 27, 28, 29, 30],
  );
  // What is ahead of a decoder's row is never seen.
  assertEquals(
    table(false, [-200, -128, -113, -64, -32, -17, -16, -15, -1, 0, 1, 9]),
    [31, 31, 31, 26, 21, 16, 16, 15, 1, 0, 0, 0],
  );
});

Deno.test("a table holds each head's summands from the farthest behind to the farthest ahead", () => {
  const values = Float32Array.from({ length: 8 }, (_, i) => i); // 4 buckets, 2 heads
  const bias = { values, buckets: 4, heads: 2, farthest: 2, isBidirectional: true };
  assertEquals([...relativeBiasTable(bias)], [2, 2, 0, 6, 6, 3, 3, 1, 7, 7]);
});
