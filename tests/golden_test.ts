// Real models against the stored answers of outside implementations: exact greedy tokens of two or three prompts a
// model (one is longer than Gemma's window), distances of the fast path over all prompts, and one model's perplexity of
// the text's first window. `deno task fixtures`, which CI runs too, has all prompts and perplexities.

import { assert } from "@std/assert";
import { goldenLlm } from "../tools/fixtures/golden_llm.ts";
import { fixturePath } from "./support/fixtures.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

const SMOLLM2 = ["chat-capital", "raw-emoji", "perplexity"];
const GEMMA = ["raw-story", "turn-capital", "raw-long"];
const EXACT = [
  ...SMOLLM2.map((id) => `golden/smollm2-135m/exact/${id}`),
  ...GEMMA.map((id) => `golden/gemma3-270m/exact/${id}`),
];

/** The fast path but its perplexities, which take longest: quality_figures_test.ts holds its loss and divergence. */
const isShort = (name: string): boolean => name.includes("/fast/") && !name.endsWith("/perplexity");

testWith(
  [modelNeed("smollm2-135m"), modelNeed("gemma3-270m")],
  "smollm2-135m and gemma3-270m answer as the reference does",
  async (t) => {
    const left = new Set(EXACT);
    // Other files run beside this one.
    const context = { device: "wasm", threads: 1, full: false } as const;
    for await (const { name, run } of goldenLlm(fixturePath("golden"), context)) {
      if (!left.delete(name) && !isShort(name)) continue;
      await t.step(name, () => {
        assert(run, "the case has to run");
        return run();
      });
    }
    assert(left.size === 0, `not run: ${[...left].join(", ")}`);
  },
);
