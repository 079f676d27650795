// Greedy and beam searches of tiny models against what transformers finds and how it scores that. The cases are those
// of `deno task fixtures`, which takes every device.

import { assertEquals, assertRejects } from "@std/assert";
import {
  beamSearch,
  type ContrastiveOptions,
  contrastiveSearch,
  type EarlyStopping,
  generate,
  load,
  ResourceError,
} from "../mod.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import { pause } from "../engine/pause.ts";
import { runCase } from "../tools/fixtures/case.ts";
import { decoding } from "../tools/fixtures/decoding.ts";
import { fixturePath } from "./support/fixtures.ts";
import { loadTiny } from "./support/models.ts";

Deno.test("searches with beams find the texts and scores of transformers, contrastive ones those of their definition", async () => {
  const counts: Record<string, number> = {}, failed: string[] = [];
  const context = { device: "wasm", full: false } as const;
  for await (const one of decoding.cases(fixturePath("decoding"), context)) {
    if (!one.name.startsWith("decoding/beams/")) continue;
    const { name, outcome, reason } = await runCase(one);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    if (outcome === "failed") failed.push(`${name}: ${reason}`);
  }
  assertEquals([failed, counts], [[], { passed: 18 }]);
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

Deno.test("a contrastive search without penalty is greedy, ends at an end token, and refuses what it cannot use", async () => {
  using model = await loadTiny({ precision: "exact", embeddings: true, sessions: 4 });
  const greedy = await generate(model, "Once", { maxTokens: 9, ignoreEos: true }).result;
  const options = { topK: 3, penaltyAlpha: 0, maxTokens: 9, endIds: [] };
  assertEquals(await contrastiveSearch(model, "Once", options), greedy.ids);
  const end = greedy.ids[4]!, first = greedy.ids.indexOf(end);
  assertEquals(
    await contrastiveSearch(model, "Once", { ...options, endIds: [end] }),
    greedy.ids.slice(0, first + 1),
  );
  const refused = async (
    more: ContrastiveOptions,
    kind: typeof Error | typeof ResourceError,
    words: string,
  ) => void await assertRejects(() => contrastiveSearch(model, "Once", more), kind, words);
  await refused({ topK: 0 }, RangeError, "Cannot use topK 0");
  await refused({ penaltyAlpha: 1.5 }, RangeError, "Cannot use penaltyAlpha 1.5");
  await refused({ topK: 5 }, ResourceError, "sessions");
  await refused({ signal: AbortSignal.abort(new Error("enough")) }, Error, "enough");
  using without = await loadTiny({});
  await assertRejects(() => contrastiveSearch(without, "Once"), TypeError, "embeddings: true");
});

Deno.test("beams whose step fails leave no rows behind that are computed in slots of others", async () => {
  using model = await load(fixturePath("models/m2m100"), {
    ...{ device: "reference", precision: "exact", sessions: 4 },
  });
  const { executable } = (model as LoadedModel).runtime, { run, openSlot, closeSlot } = executable;
  const open = new Set<number>();
  executable.openSlot = (keep) => {
    const slot = openSlot(keep);
    open.add(slot);
    return slot;
  };
  executable.closeSlot = (slot) => {
    open.delete(slot);
    closeSlot(slot);
  };
  const strangers: number[] = [];
  executable.run = (step) => {
    const slots = [...step.slots.subarray(0, step.count)];
    strangers.push(...slots.filter((slot) => !open.has(slot)));
    if (!step.isSource && step.positions[0]! > 2) throw new RangeError("a key is no number");
    return run(step);
  };
  const options = { beams: 3, maxTokens: 8, endIds: [] };
  await assertRejects(() => beamSearch(model, [4, 9, 17, 2], options), RangeError, "no number");
  for (let i = 0; i < 20; i++) await pause();
  assertEquals([strangers, open.size], [[], 0]);
});
