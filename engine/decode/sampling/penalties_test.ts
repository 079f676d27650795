// Cases of the public fixture pc-samp-02: faults that people met in other engines.

import { assertEquals, assertThrows } from "@std/assert";
import {
  checkPenalties,
  hasNumbers,
  logitsAfter,
  type PenaltyCase,
} from "../../../tools/fixtures/public_sampling.ts";
import { createCandidates, fillCandidates, keepBest } from "./candidates.ts";
import { bindChain } from "./chain.ts";
import type { TokenHistory } from "./history.ts";
import { createSampler } from "./sampler.ts";
import type { StepContext } from "./step.ts";
import { createTokenTable } from "./token_table.ts";

const fixture = new URL("../../../tests/fixtures/public/pc-samp-02/expected.json", import.meta.url);
const { cases } = JSON.parse(Deno.readTextFileSync(fixture)) as { cases: PenaltyCase[] };

for (const example of cases.filter(hasNumbers)) {
  Deno.test(`penalties: ${example.name.replaceAll("_", " ")}`, () => checkPenalties(example));
}

Deno.test("the fixture's cases with numbers are all here", () => {
  // The tenth is about a model's cache: tests/generate_test.ts.
  assertEquals([cases.filter(hasNumbers).length, cases.length], [9, 10]);
});

Deno.test("penalties act alike on a narrowed set", () => {
  const history: TokenHistory = { tokens: [0, 3, 1, 1], length: 4, promptLength: 2 };
  const given = { repeat_penalty: 2, frequency_penalty: 0.5, presence_penalty: 0.25 };
  const logits = [3, 2, 1, -1];
  const [step] = bindChain([{ name: "penalties", ...given }]);
  const whole = logitsAfter([step!], logits, history);
  assertEquals(whole, [1.5, 1 - 2 * 0.5 - 0.25, 1, -2]);

  const candidates = createCandidates(4);
  fillCandidates(candidates, Float32Array.from(logits));
  keepBest(candidates, 3);
  const table = createTokenTable(4);
  step!.apply(candidates, { history, mu: NaN, table: () => table } as StepContext);
  assertEquals([...candidates.logits.subarray(0, 3)], whole.slice(0, 3));
});

Deno.test("a history token outside the vocabulary is refused", () => {
  const sampler = createSampler({ repeatPenalty: 1.1 });
  const history: TokenHistory = { tokens: [7], length: 1, promptLength: 1 };
  assertThrows(() => sampler.sample(Float32Array.of(1, 2), history), RangeError, "token 7");
});
