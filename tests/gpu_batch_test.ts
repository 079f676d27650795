// Answers that are written at the same time on a GPU which goes ahead of them: each is what it is alone.

import { assertEquals, assertGreater } from "@std/assert";
import { generate, load, type LoadOptions, type Model } from "../mod.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import type { PlanExecutable } from "../engine/run/executable.ts";
import type { GpuPlan } from "../engine/run/gpu/backend.ts";
import { gpuTest } from "./support/gpu.ts";
import { writeRandomLlama } from "./support/random_llama.ts";

const SHAPE = {
  ...{ layers: 2, hidden: 192, heads: 6, kvHeads: 2, headDim: 32 },
  ...{ feedForward: 256, vocabulary: 320, context: 256 },
} as const;

/** Prompts that end before and behind the end of a page, and how long their answers are. */
const QUERIES = [[3, 14], [57, 10], [70, 7]] as const;

function answer(model: Model, [length, maxTokens]: readonly [number, number]): Promise<number[]> {
  const prompt = Array.from({ length }, (_, i) => 260 + (i * 17 + length) % 60);
  return generate(model, prompt, { maxTokens, ignoreEos: true, temperature: 0 }).result
    .then(({ ids }) => [...ids]);
}

gpuTest("answers go ahead together, and each is what it is alone", async () => {
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    await writeRandomLlama(path, SHAPE, "Q8_0");
    const options: LoadOptions = {
      ...{ device: "gpu", precision: "exact", kvFormat: "Q8_0", sessions: QUERIES.length },
    };
    using alone = await load(path, { ...options, stepsAhead: 0 });
    const expected: number[][] = [];
    for (const query of QUERIES) expected.push(await answer(alone, query));
    using together = await load(path, { ...options, stepsAhead: 4 });
    const answers = QUERIES.map((query) => answer(together, query));
    assertEquals(await Promise.all(answers), expected);
    const { executable } = (together as LoadedModel).runtime;
    assertGreater((executable as PlanExecutable<GpuPlan>).prepared.foreseenSteps, 6);
  } finally {
    await Deno.remove(path);
  }
});

gpuTest(
  "with strict a row has the same bits alone, in a chunk of its prompt and beside others",
  async () => {
    const path = await Deno.makeTempFile({ suffix: ".gguf" });
    try {
      await writeRandomLlama(path, { ...SHAPE, layers: 1 }, "Q8_0");
      using model = await load(path, {
        ...{ device: "gpu", precision: "strict", sessions: 9, logitRows: 32, contextLength: 128 },
      });
      const texts = Array.from(
        { length: 8 },
        (_, i) =>
          Array.from({ length: i === 7 ? 120 : 3 + 5 * i }, (_, j) => 260 + (j * 17 + i) % 60),
      );
      const next = [261, 270];
      const alone: Float32Array[][] = [];
      for (const text of texts) {
        using session = model.createSession();
        await session.sync(text);
        const rows = [session.logits().slice()];
        for (const token of next) {
          await session.eval([token]);
          rows.push(session.logits().slice());
        }
        alone.push(rows);
      }
      const chunk: Float32Array[] = [];
      using chunked = model.createSession();
      const onLogits = (row: Float32Array) => void chunk.push(row.slice());
      await chunked.eval([...texts[5]!, ...next], { onLogits });
      assertEquals(chunk.slice(texts[5]!.length - 1), alone[5]);
      const sessions = texts.map(() => model.createSession());
      await Promise.all(sessions.map((session, i) => session.sync(texts[i]!)));
      for (let step = 0; step <= next.length; step++) {
        for (const [i, session] of sessions.entries()) {
          assertEquals(session.logits(), alone[i]![step], `text ${i}, step ${step}`);
        }
        const token = next[step];
        if (token !== undefined) await Promise.all(sessions.map((one) => one.eval([token])));
      }
    } finally {
      await Deno.remove(path);
    }
  },
);
