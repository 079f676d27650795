import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { logProbability, logSumExp, topAlternatives } from "./log_softmax.ts";

const LOGITS = Float32Array.of(1, 3, -Infinity, 3, 2);

function logProbabilities(logits: Float32Array): number[] {
  return Array.from(logits, (_, token) => logProbability(logits, token));
}

Deno.test("log-probabilities are those of the definition and exponentiate to 1", () => {
  const total = Math.log(2 * Math.exp(3) + Math.exp(2) + Math.exp(1));
  assertAlmostEquals(logSumExp(LOGITS), total, 1e-12);
  const all = logProbabilities(LOGITS);
  assertEquals(all[2], -Infinity);
  assertAlmostEquals(all.reduce((sum, value) => sum + Math.exp(value), 0), 1, 1e-6);
  assertAlmostEquals(logProbability(LOGITS, 4), 2 - total, 1e-12);
});

Deno.test("large logits do not overflow", () => {
  assertEquals(logProbabilities(Float32Array.of(3e38, 3e38)), [Math.log(0.5), Math.log(0.5)]);
});

Deno.test("alternatives come best first, equals by lower id", () => {
  assertEquals(topAlternatives(LOGITS, 3).map(({ id }) => id), [1, 3, 4]);
  assertEquals(topAlternatives(LOGITS, 99).map(({ id }) => id), [1, 3, 4, 0, 2]);
  assertEquals(topAlternatives(LOGITS, 0), []);
  assertAlmostEquals(
    topAlternatives(LOGITS, 1)[0]!.logProbability,
    logProbability(LOGITS, 1),
    1e-12,
  );
});

Deno.test("alternatives equal a full sort", () => {
  const logits = Float32Array.from({ length: 3000 }, (_, i) => Math.round(Math.sin(i * 7.7) * 40));
  const sorted = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]! || a - b);
  assertEquals(topAlternatives(logits, 20).map(({ id }) => id), sorted.slice(0, 20));
});

Deno.test("logits that cannot be normalised are refused", () => {
  assertThrows(() => logSumExp(Float32Array.of(1, NaN)), RangeError, "NaN, or all are -Infinity");
  assertThrows(() => logSumExp(Float32Array.of(-Infinity)), RangeError);
  assertThrows(() => logSumExp(new Float32Array(0)), RangeError);
  assertThrows(() => logProbability(LOGITS, 5), RangeError, "Cannot score token 5");
});

Deno.test("logits of +Infinity share all probability; NaN beside them is an error", () => {
  const logits = Float32Array.of(1, Infinity, -Infinity, Infinity);
  const half = Math.log(0.5);
  assertEquals(logProbabilities(logits), [-Infinity, half, -Infinity, half]);
  assertEquals(logSumExp(logits), Infinity);
  assertThrows(() => logSumExp(Float32Array.of(Infinity, NaN)), RangeError, "they hold NaN");
});
