// Bound answers on a GPU that picks the best of what is allowed and goes ahead with it, and computes what was said before in
// one step. What they say is what they say a step at a time, no steps are computed in vain, and no rows are fetched.

import { assertAlmostEquals, assertEquals, assertLess } from "@std/assert";
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
/** Those that say something again, so that it is copied. */
const COPIED = { from: 2, to: 3 };
const TOKENS = 48;

/** An answer, and what the device did for it. */
interface Told {
  readonly ids: readonly number[];
  /** Runs that the device was given, and those that it had begun with by itself. */
  readonly runs: number;
  readonly foreseen: number;
  /** Rows that were fetched whole. */
  readonly rows: number;
  /** All logits behind it. */
  readonly logits: Float32Array;
}

async function tell(model: Model): Promise<Told[]> {
  const executable = (model as LoadedModel).runtime.executable as PlanExecutable<GpuPlan>;
  const { leftLogits, prepared } = executable, runs = countRuns(prepared);
  let rows = 0;
  executable.leftLogits = (slot, back) => {
    rows++;
    return leftLogits(slot, back);
  };
  const told: Told[] = [];
  for (const options of BOUNDS) {
    using session = model.createSession();
    const before = prepared.foreseenSteps;
    rows = 0;
    const { ids } = await generate(session, [260, 261, 262], {
      ...{ maxTokens: TOKENS, temperature: 0, ignoreEos: true, ...options },
    }).result;
    const logits = session.logits().slice();
    told.push({ ids, logits, rows, runs: runs(), foreseen: prepared.foreseenSteps - before });
  }
  return told;
}

/** A row of several is a float's rounding off from a row alone. */
function assertClose(logits: Float32Array, others: Float32Array): void {
  logits.forEach((logit, id) => assertAlmostEquals(logit, others[id]!, 1e-5));
}

gpuTest(
  "bound answers go ahead by what is allowed, and say the same",
  async () => {
    const path = await Deno.makeTempFile({ suffix: ".gguf" });
    try {
      await writeRandomLlama(path, SHAPE, "Q4_0");
      const told: Told[][] = [];
      for (const stepsAhead of [0, 8]) {
        using model = await load(path, { device: "gpu", precision: "exact", stepsAhead });
        told.push(await tell(model));
      }
      const [alone, ahead] = told as [Told[], Told[]];
      for (const [i, { ids, logits, runs, rows, foreseen }] of ahead.entries()) {
        const before = alone[i]!;
        assertEquals(ids, before.ids);
        assertClose(logits, before.logits);
        assertEquals(before.foreseen, 0);
        assertLess(runs, before.runs + 2);
        // What is allowed need not be among the best of all; a device that picks it sends no rows but the one looked at here.
        if (i < COPIED.from) assertEquals({ rows, foreseen }, { rows: 1, foreseen: TOKENS - 2 });
        if (i === COPIED.from || i === COPIED.to) assertLess(runs, before.runs);
      }
      // Two words over and over.
      assertLess(ahead[COPIED.to]!.runs, 3 / 4 * TOKENS);
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
