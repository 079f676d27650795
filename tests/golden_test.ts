// Real models against the stored answers of outside implementations: exact greedy tokens of a prompt a model, distances of
// the fast path over all prompts, of which one is longer than Gemma's window. `deno task fixtures`, which CI runs too,
// has all prompts both ways, and perplexities.

import { assert } from "@std/assert";
import { goldenLlm } from "../tools/fixtures/golden_llm.ts";
import { fixturePath } from "./support/fixtures.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

const EXACT: ReadonlySet<string> = new Set([
  "golden/smollm2-135m/exact/chat-capital",
  "golden/gemma3-270m/exact/turn-capital",
]);

/** The fast path but for what takes longest: perplexities (quality_figures_test.ts holds loss and divergence). */
const isShort = (name: string): boolean =>
  name.includes("/fast/") && !name.endsWith("/perplexity") &&
  name !== "golden/smollm2-135m/fast/raw-long";

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
