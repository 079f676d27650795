// Models whose steps need more than tokens and places, that is adapters' scales or the length of the whole text, take
// the best logits alone like any other, and on a GPU steps ahead; what they answer is what whole rows give.

import { assertEquals, assertGreater } from "@std/assert";
import { generate, load, type LoadOptions, type Model } from "../mod.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import type { PlanExecutable } from "../engine/run/executable.ts";
import type { GpuPlan } from "../engine/run/gpu/backend.ts";
import { WANTED } from "../engine/run/step.ts";
import { randomPair, writeGgufAdapter } from "./support/adapters.ts";
import { fixturePath } from "./support/fixtures.ts";
import { adapterNeed } from "./support/gpu.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { writeSeededCheckpoint } from "./support/seeded_weights.ts";
import { testWith } from "./support/skip.ts";
import { writeWordTokenizer } from "./support/toy_encoders.ts";

const PROMPT = [1, 40, 77, 12, 9, 100, 31, 5];
const TOKENS = 32;

interface Answer {
  readonly ids: readonly number[];
  readonly logits: readonly number[];
}

/** A greedy answer and one of the best 40, and how many steps brought the best logits alone. */
async function answersOf(
  path: string,
  options: LoadOptions,
  isNarrow: boolean,
): Promise<
  { readonly answers: readonly Answer[]; readonly narrow: number; readonly model: Model }
> {
  using model = await load(path, {
    contextLength: 64,
    sessions: 2,
    precision: "exact",
    ...options,
  });
  const { executable } = (model as LoadedModel).runtime;
  const { run } = executable;
  let narrow = 0;
  executable.run = async (step) => {
    const { wanted, count } = step;
    for (let row = 0; row < count; row++) {
      if (!isNarrow && wanted[row]! > 0) wanted[row] = WANTED.logits;
    }
    await run(step);
    if (executable.best(count - 1)) narrow++;
  };
  const answers: Answer[] = [];
  for (const sampler of [{ temperature: 0 }, { temperature: 0.8, topK: 40, seed: 3 }]) {
    using session = model.createSession();
    const { ids } = await generate(session, PROMPT, {
      ...{ maxTokens: TOKENS, ignoreEos: true, ...sampler },
    }).result;
    answers.push({ ids, logits: [...session.logits()] });
  }
  return { answers, narrow, model };
}

/** Steps that the GPU had computed before they were asked for. */
function foreseen(model: Model): number {
  return ((model as LoadedModel).runtime.executable as PlanExecutable<GpuPlan>).prepared
    .foreseenSteps;
}

/** Prompt and answer go across 32 tokens, where the rotations of the second change. */
const MODELS: Readonly<Record<string, (folder: string) => [path: string, options: LoadOptions]>> = {
  "with adapters"(folder) {
    const pair = randomPair("blk.1.attn_output.weight", [32, 32], 4);
    writeGgufAdapter(`${folder}/a.gguf`, [pair], {
      "general.architecture": ["string", "llama"],
      "adapter.lora.alpha": ["f32", 40],
    });
    return [TINY_LLAMA, { adapters: [`${folder}/a.gguf`] }];
  },
  "whose rotations change with the length"(folder) {
    writeSeededCheckpoint(fixturePath("models/phi3_longrope"), folder);
    writeWordTokenizer(folder);
    return [folder, {}];
  },
};

for (const device of ["wasm", "gpu"] as const) {
  for (const [what, prepare] of Object.entries(MODELS)) {
    testWith(
      device === "gpu" ? [adapterNeed] : [],
      `${device}: a model ${what} brings the best logits alone`,
      async () => {
        const folder = await Deno.makeTempDir();
        try {
          const [path, options] = prepare(folder);
          const whole = await answersOf(path, { ...options, device, stepsAhead: 0 }, false);
          assertEquals(whole.narrow, 0);
          for (const stepsAhead of device === "gpu" ? [0, 4] : [0]) {
            const narrow = await answersOf(path, { ...options, device, stepsAhead }, true);
            assertEquals(narrow.answers, whole.answers);
            assertEquals(narrow.narrow, 2 * TOKENS);
            if (stepsAhead > 0) assertGreater(foreseen(narrow.model), TOKENS / 2);
          }
        } finally {
          await Deno.remove(folder, { recursive: true });
        }
      },
    );
  }
}
