// Bound answers on a GPU that picks the best of what is allowed and goes ahead with it. What they say is what they say a
// step at a time, no steps are computed in vain, and no rows are fetched.

import { assertEquals, assertGreater, assertLess } from "@std/assert";
import { generate, type GenerateOptions, load, type Model } from "../mod.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import type { PlanExecutable } from "../engine/run/executable.ts";
import type { GpuPlan } from "../engine/run/gpu/backend.ts";
import { gpuTest } from "./support/gpu.ts";
import { countRuns } from "./support/gpu_runs.ts";
import { writeRandomLlama } from "./support/random_llama.ts";

const SHAPE = {
  ...{ layers: 2, hidden: 192, heads: 6, kvHeads: 2, headDim: 32 },
  ...{ feedForward: 256, vocabulary: 320, context: 128, isLively: true },
} as const;

const WORDS = { type: "string", minLength: 40, maxLength: 60 } as const;
/** From nearly all best tokens allowed to hardly one. */
const BOUNDS: readonly GenerateOptions[] = [
  { regex: "[\\s\\S]{200}" },
  { regex: "[^a-f]{120}" },
  { schema: { type: "array", minItems: 9, items: WORDS } },
  { schema: { type: "array", minItems: 9, items: { enum: ["the sea", "a tree"] } } },
  { regex: "[\\s\\S]{200}", topK: 3, temperature: 0.5, seed: 4 },
];

interface Told {
  readonly ids: readonly (readonly number[])[];
  /** Runs that the device was given. */
  readonly runs: number;
  /** Rows that were fetched whole. */
  readonly rows: number;
  readonly foreseen: number;
  /** All logits behind each answer. */
  readonly logits: readonly Float32Array[];
}

async function tell(model: Model): Promise<Told> {
  const executable = (model as LoadedModel).runtime.executable as PlanExecutable<GpuPlan>;
  const { leftLogits } = executable, runs = countRuns(executable.prepared);
  let rows = 0;
  executable.leftLogits = (slot) => {
    rows++;
    return leftLogits(slot);
  };
  const ids: (readonly number[])[] = [], logits: Float32Array[] = [];
  for (const options of BOUNDS) {
    using session = model.createSession();
    const answer = generate(session, [260, 261, 262], {
      ...{ maxTokens: 48, temperature: 0, ignoreEos: true, ...options },
    });
    ids.push((await answer.result).ids);
    logits.push(session.logits().slice());
  }
  return { ids, logits, runs: runs(), rows, foreseen: executable.prepared.foreseenSteps };
}

gpuTest(
  "bound answers go ahead by what is allowed, and say the same",
  async () => {
    const path = await Deno.makeTempFile({ suffix: ".gguf" });
    try {
      await writeRandomLlama(path, SHAPE, "Q4_0");
      const told: Told[] = [];
      for (const stepsAhead of [0, 8]) {
        using model = await load(path, { device: "gpu", precision: "exact", stepsAhead });
        told.push(await tell(model));
      }
      const [alone, ahead] = told as [Told, Told];
      assertEquals(ahead.ids, alone.ids);
      assertEquals(ahead.logits, alone.logits);
      assertEquals(alone.foreseen, 0);
      // All but the first run of each greedy answer; the device may have begun with one more than is asked for.
      assertGreater(ahead.foreseen, 4 * 46 - 1);
      assertLess(ahead.runs - alone.runs, BOUNDS.length);
      // What is allowed need not be among the best of all; here only our own look at the last logits fetches rows.
      assertGreater(alone.rows, BOUNDS.length);
      assertEquals(ahead.rows, BOUNDS.length);
    } finally {
      await Deno.remove(path);
    }
  },
);

gpuTest("an answer that fills its context leaves the rows of others alone", async () => {
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    await writeRandomLlama(path, SHAPE, "Q4_0");
    for (const bound of [{ regex: "[\\s\\S]{300}" }, {}]) {
      const told: Float32Array[] = [];
      for (const stepsAhead of [0, 8]) {
        using model = await load(path, {
          ...{ device: "gpu", stepsAhead, sessions: 2, contextLength: 64 },
        });
        using own = model.createSession(), other = model.createSession();
        // Slots of sessions are given in turn: the rows of the other one lie behind.
        await own.sync([260]);
        await other.sync([263, 264, 265, 266]);
        const options = { maxTokens: 200, temperature: 0, ignoreEos: true, ...bound };
        const { finishReason } = await generate(own, [260, 261, 262], {
          ...options,
          onContextFull: "stop",
        }).result;
        assertEquals(finishReason, "context");
        await other.eval([270]);
        told.push(other.logits().slice());
      }
      assertEquals(told[1], told[0]);
    }
  } finally {
    await Deno.remove(path);
  }
});
