// Real models against the stored answers of outside implementations: exact greedy tokens of four prompts a
// model (the long one is longer than Gemma's window), distances of the fast path over all prompts, and
// perplexity of the text's first windows. `deno task fixtures` runs the same cases in full.

import { assert } from "@std/assert";
import { goldenLlm } from "../tools/fixtures/golden_llm.ts";
import { fixturePath } from "./support/fixtures.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

const EXACT = new Set([
  ...["chat-capital", "chat-turns", "raw-emoji"].map((id) => `golden/smollm2-135m/exact/${id}`),
  ...["raw-story", "raw-cjk", "turn-capital"].map((id) => `golden/gemma3-270m/exact/${id}`),
  ...["raw-long", "perplexity"].flatMap((id) =>
    ["smollm2-135m", "gemma3-270m"].map((name) => `golden/${name}/exact/${id}`)
  ),
]);

testWith(
  [modelNeed("smollm2-135m"), modelNeed("gemma3-270m")],
  "smollm2-135m and gemma3-270m answer as the reference does",
  async (t) => {
    const left = new Set(EXACT);
    const context = { device: "wasm", full: false } as const;
    for await (const { name, run } of goldenLlm(fixturePath("golden"), context)) {
      if (name.includes("/exact/") && !left.delete(name)) continue;
      await t.step(name, () => {
        assert(run, "the case has to run");
        return run();
      });
    }
    assert(left.size === 0, `not run: ${[...left].join(", ")}`);
  },
);
