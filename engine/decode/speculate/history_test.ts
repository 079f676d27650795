import { assertEquals, assertLessOrEqual } from "@std/assert";
import { createHistory, createHistoryProposer } from "./history.ts";
import { matchLevel, NOTHING, type Proposal, type Proposer } from "./proposer.ts";

function proposed(proposer: Proposer, tokens: readonly number[], most = 8): number[] {
  if (proposer.level(tokens) === NOTHING) return [];
  const { tokens: draft, count } = proposer.propose(tokens, most) as Proposal;
  return [...draft.subarray(0, count)];
}

Deno.test("what earlier answers went on with is proposed, up to their end", () => {
  const history = createHistory();
  history.add([5, 6, 7, 8, 9]);
  history.add([20, 21, 22]);
  assertEquals(proposed(createHistoryProposer(history, {}), [1, 6, 7]), [8, 9]);
  assertEquals(proposed(createHistoryProposer(history, {}), [1, 9]), []);
  assertEquals(proposed(createHistoryProposer(history, { endIds: new Set([8]) }), [6, 7]), []);
});

Deno.test("the longer of two matches counts, the text's own where they are equal", () => {
  const history = createHistory();
  history.add([1, 2, 3, 4, 50]);
  const proposer = createHistoryProposer(history, {});
  const text = [3, 4, 60, 70, 2, 3, 4];
  assertEquals(proposer.level(text), matchLevel(3));
  assertEquals(proposed(proposer, text, 1), [50]);
  assertEquals(proposed(createHistoryProposer(history, {}), [9, 4, 60, 9, 4], 1), [60]);
});

Deno.test("an answer is kept when it has ended, without its prompt", () => {
  const history = createHistory();
  const proposer = createHistoryProposer(history, {});
  proposer.finish!([1, 2, 3, 4, 5], 2);
  assertEquals(proposed(createHistoryProposer(history, {}), [3, 4]), [5]);
  assertEquals(proposed(createHistoryProposer(history, {}), [1, 2]), []);
});

Deno.test("a history never holds more than it may; the oldest answers go first", () => {
  const history = createHistory(64);
  for (let answer = 0; answer < 50; answer++) {
    history.add(Array.from({ length: 7 }, (_, i) => 100 * answer + i));
    assertLessOrEqual(history.answers.length, 64);
  }
  assertEquals(proposed(createHistoryProposer(history, {}), [4900, 4901], 2), [4902, 4903]);
  assertEquals(proposed(createHistoryProposer(history, {}), [0, 1]), []);
  history.add(Array.from({ length: 1000 }, (_, i) => i)); // longer than all of it
  assertLessOrEqual(history.answers.length, 64);
  assertEquals(proposed(createHistoryProposer(history, {}), [3, 4], 2), [5, 6]);
});
