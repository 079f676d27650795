// `fast` beside llama.cpp, on prompts that nothing was tuned to (tools/fixtures/near_prompts.ts made them): nearer to the exact
// log-probabilities by mean and by worst, and hardly dependent on how a prompt is cut into calls.

import { assert } from "@std/assert";
import { load, type Model } from "../mod.ts";
import type { NearPrompt } from "../tools/fixtures/near_prompts.ts";
import { logSoftmaxAt } from "../tools/fixtures/logits.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

/** Most that a logit may change with how a prompt is cut into calls. */
const MOST_BY_CUTS = 0.1;
const CUTS: readonly number[] = [7, 20];

const stored: Record<string, readonly NearPrompt[]> = JSON.parse(
  await Deno.readTextFile(new URL("./fixtures/golden/near_prompts.json", import.meta.url)),
);

const mean = (values: readonly number[]): number =>
  values.reduce((a, b) => a + b, 0) / values.length;

async function compare(model: Model, prompts: readonly NearPrompt[]): Promise<void> {
  using session = model.createSession();
  const ours: number[] = [], theirs: number[] = [];
  for (const { ids, best } of prompts) {
    session.rewind(0);
    await session.sync(ids);
    const logits = session.logits();
    for (const [id, exact, other] of best) {
      ours.push(Math.abs(logSoftmaxAt(logits, id) - exact));
      theirs.push(Math.abs(other - exact));
    }
  }
  assert(mean(ours) <= mean(theirs), `mean ${mean(ours)}, llama.cpp's ${mean(theirs)}`);
  const [worst, worstOther] = [Math.max(...ours), Math.max(...theirs)];
  assert(worst <= worstOther, `worst ${worst}, llama.cpp's ${worstOther}`);
}

/** Largest difference of a log-probability among the best, over ways to cut the first prompts. */
async function compareCuts(model: Model, prompts: readonly NearPrompt[]): Promise<void> {
  for (const { name, ids, best } of prompts.filter(({ ids }) => ids.length < 100)) {
    using session = model.createSession();
    await session.sync(ids);
    const whole = session.logits().slice();
    for (const cut of CUTS.filter((cut) => cut < ids.length)) {
      session.rewind(0);
      for (let at = cut; at < ids.length; at += cut) await session.sync(ids.slice(0, at));
      await session.sync(ids);
      const logits = session.logits();
      const most = Math.max(...best.map(([id]) => Math.abs(logits[id]! - whole[id]!)));
      assert(most <= MOST_BY_CUTS, `${name} in pieces of ${cut}: a logit moves by ${most}`);
    }
  }
}

for (const [name, prompts] of Object.entries(stored)) {
  testWith(
    [modelNeed(name)],
    `fast ${name} is nearer to exact than llama.cpp on prompts that nothing was tuned to`,
    async () => {
      using model = await load(name, { device: "wasm", precision: "fast", contextLength: 2048 });
      await compare(model, prompts);
      await compareCuts(model, prompts);
    },
  );
}
