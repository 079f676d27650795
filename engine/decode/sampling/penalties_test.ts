// Cases of the public fixture pc-samp-02: faults that people met in other engines.

import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { createCandidates, fillCandidates, keepBest } from "./candidates.ts";
import { bindChain } from "./chain.ts";
import type { TokenHistory } from "./history.ts";
import { resolveOptions } from "./options.ts";
import type { SamplerOptions } from "./sampler_options.ts";
import { createSampler } from "./sampler.ts";
import type { BoundStep, StepContext } from "./step.ts";
import { createTokenTable } from "./token_table.ts";

interface PenaltyCase {
  name: string;
  logits?: number[];
  history?: number[];
  prompt?: number[];
  generated?: number[];
  options?: SamplerOptions;
  logits_after?: number[];
  always?: number;
}

const fixture = new URL("../../../tests/fixtures/public/pc-samp-02/expected.json", import.meta.url);
const { cases } = JSON.parse(Deno.readTextFileSync(fixture)) as { cases: PenaltyCase[] };

function historyOf({ history = [], prompt = history, generated = [] }: PenaltyCase): TokenHistory {
  const tokens = [...prompt, ...generated];
  return { tokens, length: tokens.length, promptLength: prompt.length };
}

function logitsAfter(
  steps: readonly BoundStep[],
  logits: readonly number[],
  history: TokenHistory,
): number[] {
  const candidates = createCandidates(logits.length);
  fillCandidates(candidates, Float32Array.from(logits));
  const table = createTokenTable(logits.length);
  const context = { history, mu: NaN, table: () => table } as StepContext;
  for (const step of steps) step.apply(candidates, context);
  return Array.from(logits, (_, id) => candidates.logits[candidates.ids.indexOf(id)]!);
}

for (const example of cases) {
  const { name, logits, options, logits_after, always } = example;
  if (logits_after) {
    Deno.test(`penalties: ${name.replaceAll("_", " ")}`, () => {
      const steps = resolveOptions(options!).chain.filter((step) => step.name === "penalties");
      logitsAfter(steps, logits!, historyOf(example)).forEach((logit, id) =>
        assertAlmostEquals(logit, logits_after[id]!, 1e-5)
      );
    });
  } else if (always !== undefined) {
    Deno.test(`penalties: ${name.replaceAll("_", " ")} takes the same token always`, () => {
      const sampler = createSampler(options!);
      for (let i = 0; i < 100; i++) {
        assertEquals(sampler.sample(Float32Array.from(logits!), historyOf(example)), always);
      }
    });
  }
}

Deno.test("the fixture's cases with numbers are all here", () => {
  const withNumbers = cases.filter((c) => c.logits_after || c.always !== undefined);
  assertEquals([withNumbers.length, cases.length], [9, 10]);
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
