// Scores that are no numbers: an order of them would be none.

import { assertEquals, assertThrows } from "@std/assert";
import { orderedScores, softmaxInPlace } from "./encoder_text.ts";

Deno.test("a score of NaN is an error by name, and infinite ones are in order", () => {
  assertThrows(
    () => orderedScores(Float32Array.of(1, NaN)),
    RangeError,
    "Cannot order scores: that of 1 is NaN",
  );
  const scores = Float32Array.of(1, Infinity, -Infinity, Infinity);
  assertEquals([...softmaxInPlace(orderedScores(scores))], [0, 0.5, 0, 0.5]);
});
