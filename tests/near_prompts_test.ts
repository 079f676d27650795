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

/** The logits behind each prompt, which are compared. */
async function compare(
  model: Model,
  prompts: readonly NearPrompt[],
): Promise<Map<NearPrompt, Float32Array>> {
  using session = model.createSession();
  const ours: number[] = [], theirs: number[] = [], wholes = new Map<NearPrompt, Float32Array>();
  for (const prompt of prompts) {
    const { ids, best } = prompt;
    session.rewind(0);
    await session.sync(ids);
    const logits = session.logits().slice();
    wholes.set(prompt, logits);
    for (const [id, exact, other] of best) {
      ours.push(Math.abs(logSoftmaxAt(logits, id) - exact));
      theirs.push(Math.abs(other - exact));
    }
  }
  assert(mean(ours) <= mean(theirs), `mean ${mean(ours)}, llama.cpp's ${mean(theirs)}`);
  const [worst, worstOther] = [Math.max(...ours), Math.max(...theirs)];
  assert(worst <= worstOther, `worst ${worst}, llama.cpp's ${worstOther}`);
  return wholes;
}

/** Largest difference of a logit among the best, over ways to cut the short prompts. */
async function compareCuts(
  model: Model,
  prompts: readonly NearPrompt[],
  wholes: ReadonlyMap<NearPrompt, Float32Array>,
): Promise<void> {
  for (const prompt of prompts.filter(({ ids }) => ids.length < 100)) {
    const { name, ids, best } = prompt, whole = wholes.get(prompt)!;
    using session = model.createSession();
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
      await compareCuts(model, prompts, await compare(model, prompts));
    },
  );
}
