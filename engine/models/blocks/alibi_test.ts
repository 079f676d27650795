import { assertAlmostEquals, assertEquals } from "@std/assert";
import { alibiSlopes } from "./alibi.ts";

Deno.test("slopes of 12 heads are the eight of a power of two, and every second one of sixteen", () => {
  // Spec §9.4.
  const expected = [
    ...[.5, .25, .125, .0625, .03125, .015625, .007812, .003906],
    ...[.707107, .353553, .176777, .088388],
  ];
  const slopes = alibiSlopes(12);
  assertEquals(slopes.length, 12);
  expected.forEach((slope, head) => assertAlmostEquals(slopes[head]!, slope, 6e-7));
});

Deno.test("slopes of a power of two are a geometric series that ends with 1/256", () => {
  assertEquals([...alibiSlopes(8)], [1, 2, 3, 4, 5, 6, 7, 8].map((i) => 2 ** -i));
  assertEquals(alibiSlopes(1)[0], 2 ** -8);
});
