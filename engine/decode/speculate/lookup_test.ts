import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { createLookup } from "./lookup.ts";
import { matchLevel, NOTHING, type Proposal } from "./proposer.ts";

const tokensOf = ({ tokens, count }: Proposal) => [...tokens.subarray(0, count)];

Deno.test("a lookup that grows with its text finds what a new one finds", () => {
  const text = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(text, fc.constantFrom("first" as const, "latest" as const), (all, which) => {
      const growing = createLookup({ occurrence: which });
      const text: number[] = [];
      for (const token of all) {
        text.push(token);
        const fresh = createLookup({ occurrence: which }), level = growing.level(text);
        assertEquals(level, fresh.level([...text]));
        if (level === NOTHING) continue;
        assertEquals(tokensOf(growing.propose(text, 5)), tokensOf(fresh.propose(text, 5)));
      }
    }),
  );
});

Deno.test("a long text is indexed whole: tables grow, and every n-gram is found again", () => {
  const text = Array.from({ length: 5000 }, (_, i) => i * 7919 % 4999 + 10 * (i % 3));
  const lookup = createLookup();
  for (const at of [10, 700, 4000]) {
    const asked = [...text, ...text.slice(at, at + 3)];
    assertEquals(createLookup().level(asked) >= matchLevel(3), true);
    lookup.level(text);
    const found = createLookup();
    found.level(asked);
    assertEquals(tokensOf(found.propose(asked, 8)), text.slice(at + 3, at + 11));
  }
});

Deno.test("how sure a lookup is follows from how many tokens agree", () => {
  const text = Array.from({ length: 40 }, (_, i) => i);
  for (const length of [1, 2, 3, 4, 8, 16]) {
    const lookup = createLookup();
    const level = lookup.level([...text, 99, ...text.slice(20, 20 + length)]);
    assertEquals([level, lookup.matched], [matchLevel(length), length]);
  }
  assertEquals(createLookup().level([...text, 99]), NOTHING);
});

Deno.test("a loop is continued beyond its end, and an end of text is never proposed", () => {
  const loop = [1, 2, 3, 1, 2, 3, 1, 2, 3];
  const lookup = createLookup();
  lookup.level(loop);
  assertEquals(tokensOf(lookup.propose(loop, 7)), [1, 2, 3, 1, 2, 3, 1]);
  const ending = createLookup({ endIds: new Set([3]) });
  ending.level([1, 2, 3, 1]);
  assertEquals(tokensOf(ending.propose([1, 2, 3, 1], 4)), [2]);
  assertEquals(createLookup({ endIds: new Set([2]) }).level([1, 2, 3, 1]), NOTHING);
});

Deno.test("a lookup that is to be sure proposes behind so many tokens that match, and says when it is close", () => {
  const lookup = createLookup({ least: 4 }), text = [1, 2, 3, 4, 5, 6, 9];
  const told = [1, 2, 3, 4].map((token) => {
    text.push(token);
    return { level: lookup.level(text), isClose: lookup.isClose };
  });
  assertEquals(told, [
    { level: NOTHING, isClose: false },
    { level: NOTHING, isClose: false },
    { level: NOTHING, isClose: true },
    { level: matchLevel(4), isClose: false },
  ]);
  assertEquals(tokensOf(lookup.propose(text, 3)), [5, 6, 9]);
});
