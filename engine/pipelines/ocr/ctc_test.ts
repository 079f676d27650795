import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { decodeCtc } from "./ctc.ts";

const LETTERS = ["", "a", "b"];

/** Columns in which one class each has the given probability. */
function columns(...best: readonly (readonly [letter: number, probability: number])[]) {
  return Float32Array.from(best.flatMap(([letter, probability]) => {
    const rest = (1 - probability) / 2;
    return LETTERS.map((_, i) => i === letter ? probability : rest);
  }));
}

// By the definition: repetitions merge, then blanks go.
Deno.test("repeated letters are one, unless a blank is between them", () => {
  const { text, score } = decodeCtc(
    columns([1, 0.5], [1, 0.9], [0, 0.8], [1, 0.75], [2, 1], [0, 0.9]),
    LETTERS,
  );
  assertEquals(text, "aab");
  assertAlmostEquals(score, (0.5 + 0.75 + 1) / 3, 1e-6);
});

Deno.test("nothing but blanks is no text, and columns must fit the letters", () => {
  assertEquals(decodeCtc(columns([0, 1]), LETTERS), { text: "", score: 0 });
  assertThrows(() => decodeCtc(new Float32Array(4), LETTERS), RangeError, "4 probabilities");
});
