import { assertEquals } from "@std/assert";
import type { Controller, Outcome } from "./controller.ts";
import type { Proposer } from "./proposer.ts";
import { createUnchecked } from "./unchecked.ts";

Deno.test("a proposal that is not checked counts to its first wrong token, and one at a time is watched", () => {
  const seen: Outcome[] = [];
  const controller = { see: (one) => void seen.push(one) } as Controller;
  const proposals = [[5, 6, 7], [1, 2], [9]];
  let asked = 0;
  const proposer = {
    propose() {
      const tokens = Int32Array.from(proposals[asked++]!);
      return { tokens, count: tokens.length };
    },
  } as unknown as Proposer;
  const unchecked = createUnchecked(proposer, controller);
  unchecked.take(5); // nothing is watched yet
  unchecked.watch([4], -1); // nothing is proposed
  assertEquals(asked, 0);
  unchecked.watch([4], 2);
  unchecked.take(5);
  unchecked.watch([4, 5], 3); // still the first one
  unchecked.take(6);
  unchecked.take(8);
  assertEquals([asked, seen.splice(0)], [1, [{ level: 2, accepted: 2, isRefused: true }]]);
  unchecked.watch([4, 5, 6, 8], 4);
  unchecked.take(1);
  unchecked.take(2);
  assertEquals(seen.splice(0), [{ level: 4, accepted: 2, isRefused: false }]);
  unchecked.watch([4, 5, 6, 8, 1, 2], 0);
  unchecked.take(3);
  assertEquals(seen, [{ level: 0, accepted: 0, isRefused: true }]);
});
