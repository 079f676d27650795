// Greedy and beam searches of tiny models against what transformers finds and how it scores that. The cases are those
// of `deno task fixtures`, which takes every device.

import { assertEquals, assertRejects } from "@std/assert";
import { beamSearch, type EarlyStopping, load } from "../mod.ts";
import { runCase } from "../tools/fixtures/case.ts";
import { decoding } from "../tools/fixtures/decoding.ts";
import { fixturePath } from "./support/fixtures.ts";

Deno.test("searches with beams find the texts and scores of transformers", async () => {
  const counts: Record<string, number> = {}, failed: string[] = [];
  const context = { device: "wasm", full: false } as const;
  for await (const one of decoding.cases(fixturePath("decoding"), context)) {
    if (!one.name.startsWith("decoding/beams/")) continue;
    const { name, outcome, reason } = await runCase(one);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    if (outcome === "failed") failed.push(`${name}: ${reason}`);
  }
  // Contrastive search is what is skipped.
  assertEquals([failed, counts], [[], { passed: 16, skipped: 2 }]);
});

Deno.test("as many beams as matter find the best of all texts, and what is no option is refused", async () => {
  using model = await load(fixturePath("models/m2m100"), {
    ...{ device: "reference", precision: "exact", sessions: 17 },
  });
  const source = [4, 9, 17, 2];
  const [best] = await beamSearch(model, source, {
    ...{ beams: 16, maxTokens: 2, endIds: [], lengthPenalty: 0 },
  });
  // Of all pairs of tokens, by the sum of their log-probabilities.
  using session = model.createSession();
  await session.encode(source);
  const logProbabilities = async (tokens: number[]) => {
    await session.sync([2, ...tokens]);
    const logits = Array.from(session.logits());
    const mass = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
    return logits.map((logit) => logit - mass);
  };
  let wanted = { ids: [0, 0], score: -Infinity };
  for (const [first, one] of (await logProbabilities([])).entries()) {
    for (const [second, two] of (await logProbabilities([first])).entries()) {
      if (one + two > wanted.score) wanted = { ids: [first, second], score: one + two };
    }
  }
  assertEquals([best!.ids, best!.score.toFixed(4)], [wanted.ids, wanted.score.toFixed(4)]);
  // A model with room for fewer tokens than the default needs no other number.
  assertEquals((await beamSearch(model, source, { beams: 1, endIds: [] }))[0]!.ids.length, 63);
  const earlyStopping = "sometimes" as unknown as EarlyStopping;
  await assertRejects(
    () => beamSearch(model, source, { beams: 2, endIds: [], earlyStopping }),
    RangeError,
    'Cannot use earlyStopping sometimes: it is true, false or "never"',
  );
});
