import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { createCandidates, fillCandidates } from "./candidates.ts";
import { sortTop } from "./order.ts";

/** Ids by logit, best first, equals by lower id. */
function expectedOrder(logits: readonly number[]): number[] {
  return logits.map((_, id) => id).sort((a, b) => logits[b]! - logits[a]! || a - b);
}

const logit = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.constant(-0),
  fc.double({ min: -100, max: 100, noNaN: true }).map(Math.fround),
);

Deno.test("any sequence of growing prefixes ends in the same order, ties by lower id", () => {
  fc.assert(
    fc.property(
      // Left alone, arrays are too short for the heap, which takes a quarter at most.
      fc.array(logit, { minLength: 1, maxLength: 300, size: "max" }),
      fc.array(fc.oneof(fc.nat(310), fc.nat(12)), { minLength: 1, maxLength: 4 }),
      (logits, prefixes) => {
        const candidates = createCandidates(logits.length);
        fillCandidates(candidates, Float32Array.from(logits));
        const wanted = expectedOrder(logits);
        for (const prefix of prefixes) {
          sortTop(candidates, prefix);
          const sorted = Math.min(prefix, logits.length);
          assertEquals([...candidates.ids.subarray(0, sorted)], wanted.slice(0, sorted));
          for (let i = 0; i < logits.length; i++) {
            assertEquals(candidates.logits[i]! + 0, logits[candidates.ids[i]!]! + 0);
          }
        }
      },
    ),
    { seed: 11, numRuns: 100 },
  );
});

Deno.test("-Infinity sorts behind every finite logit", () => {
  const candidates = createCandidates(5);
  fillCandidates(candidates, Float32Array.of(-Infinity, -3e38, 0, -Infinity, 3e38));
  sortTop(candidates, 5);
  assertEquals([...candidates.ids], [4, 2, 1, 0, 3]);
});
