// Steps of which only the best logits are looked at: what generations and sessions give is what they give where the
// device brings whole rows.

import { assert, assertEquals } from "@std/assert";
import { generate, type GenerateOptions, load, type Model, type Session } from "../mod.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import { WANTED } from "../engine/run/step.ts";
import { loadTiny } from "./support/models.ts";
import { writeRandomLlama } from "./support/random_llama.ts";

const PROMPT = [1, 40, 77, 12, 9, 200, 31, 5];
const OPTIONS = { device: "wasm", contextLength: 64, sessions: 3 } as const;
const USUAL = { temperature: 0.8, topK: 40, topP: 0.95 } as const;
const CHAINS: readonly GenerateOptions[] = [
  { temperature: 0 },
  { ...USUAL, seed: 1 },
  { ...USUAL, seed: 2 },
  { ...USUAL, topK: 64, minP: 0.02, seed: 3 },
  { temperature: 1.5, topK: 1, seed: 4 },
  { temperature: 0.9, topP: 0.9, seed: 5 },
  { ...USUAL, repeatPenalty: 1.2, seed: 6 },
];

/** What runs the steps of a model. */
function executableOf(model: Model) {
  return (model as LoadedModel).runtime.executable;
}

/** Counts steps, and those that were answered with the best logits alone. */
function countNarrow(model: Model): { steps: number; count: number } {
  const executable = executableOf(model);
  const { run } = executable;
  const narrow = { steps: 0, count: 0 };
  executable.run = async (step) => {
    await run(step);
    narrow.steps++;
    if (executable.best(step.count - 1)) narrow.count++;
  };
  return narrow;
}

/** Wants whole rows where the best were wanted. */
function wishless(model: Model): void {
  const executable = executableOf(model);
  const { run } = executable;
  executable.run = (step) => {
    const { wanted, count } = step;
    for (let row = 0; row < count; row++) if (wanted[row]! > 0) wanted[row] = WANTED.logits;
    return run(step);
  };
}

async function withModels(run: (model: Model, whole: Model) => Promise<void>): Promise<void> {
  using model = await loadTiny(OPTIONS);
  using whole = await loadTiny(OPTIONS);
  wishless(whole);
  await run(model, whole);
}

async function answer(session: Session, options: GenerateOptions, prompt = PROMPT) {
  const { ids } = await generate(session, prompt, { maxTokens: 24, ignoreEos: true, ...options })
    .result;
  return { ids, logits: [...session.logits()] };
}

Deno.test("tokens and last logits are those of whole rows, for every chain", () =>
  withModels(async (model, whole) => {
    const narrow = countNarrow(model);
    for (const options of CHAINS) {
      using a = model.createSession();
      using b = whole.createSession();
      const before = narrow.count;
      assertEquals(await answer(a, options), await answer(b, options));
      const isNarrow = options.temperature === 0 ||
        options.topK !== undefined && options.repeatPenalty === undefined;
      assertEquals(narrow.count - before, isNarrow ? 24 : 0, JSON.stringify(options));
    }
  }));

Deno.test("logits are there at every token, and after other sessions' steps", () =>
  withModels(async (model, whole) => {
    const rows = async (from: Model, others: boolean) => {
      using session = from.createSession();
      using other = from.createSession();
      const rows: number[][] = [];
      let turn = 0;
      const steps = generate(session, PROMPT, {
        ...USUAL,
        seed: 9,
        maxTokens: 12,
        ignoreEos: true,
      });
      for await (const _ of steps) {
        if (others && turn++ % 2) await answer(other, { temperature: 0, maxTokens: 2 }, [7, turn]);
        if (turn % 3 !== 1) rows.push([...session.logits()]);
        else rows.push([]);
      }
      return rows;
    };
    const expected = await rows(whole, true);
    assert(expected.flat().length > 0);
    assertEquals(await rows(model, true), expected);
  }));

Deno.test("two answers side by side share their steps and compute no token twice", () =>
  withModels(async (model, whole) => {
    const both = async (from: Model) => {
      using a = from.createSession();
      using b = from.createSession();
      const given = await Promise.all([
        answer(a, { temperature: 0 }),
        answer(b, { ...USUAL, seed: 4 }, [3, 2, 1]),
      ]);
      return given;
    };
    const narrow = countNarrow(model);
    assertEquals(await both(model), await both(whole));
    assertEquals(narrow, { steps: 24, count: 24 });
  }));

Deno.test("a session goes on from a narrowed step by eval, rewind, save and load", () =>
  withModels(async (model, whole) => {
    const rows = async (from: Model) => {
      using session = from.createSession();
      using other = from.createSession();
      const { logits, ids } = await answer(session, { temperature: 0 });
      const rows = [logits];
      await session.eval([5, 6]);
      rows.push([...session.logits()]);
      const saved = await session.save();
      session.rewind(12);
      await session.eval([ids[3]!]);
      rows.push([...session.logits()]);
      await other.load(saved);
      await other.eval([9]);
      rows.push([...other.logits()]);
      return rows;
    };
    assertEquals(await rows(model), await rows(whole));
  }));

Deno.test("a logit of NaN is told, and one of +Infinity taken, as where whole rows are brought", () =>
  withModels(async (model, whole) => {
    for (const value of [NaN, Infinity]) {
      const outcome = async (from: Model) => {
        using session = from.createSession();
        await session.sync(PROMPT);
        const executable = executableOf(from);
        const { run } = executable;
        // What the head gives is broken before it is looked at, as by weights that overflow.
        executable.run = (step) => {
          void run(step);
          const row = step.count - 1;
          executable.logits(row)[17] = value;
          const best = executable.best(row);
          if (best) Object.assign(best.logits, { 0: value }), best.ids[0] = 17;
        };
        try {
          return await generate(session, [...PROMPT, 3], { temperature: 0, maxTokens: 3 }).result
            .then(({ ids }) => ids.join(), String);
        } finally {
          executable.run = run;
        }
      };
      const expected = value === Infinity
        ? "17,17,17"
        : "RangeError: Cannot sample: the logit of token 17 is NaN";
      assertEquals([await outcome(whole), await outcome(model)], [expected, expected]);
    }
  }));

Deno.test("a model over several memories finds the best logits in its last one", async () => {
  const shape = {
    ...{ layers: 5, hidden: 256, heads: 4, kvHeads: 2, headDim: 64 },
    ...{ feedForward: 768, vocabulary: 600, context: 512 },
  };
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    await writeRandomLlama(path, shape, "Q8_0");
    using whole = await load(path, OPTIONS);
    wishless(whole);
    // Each thread has room of its own to pack in.
    using parted = await load(path, { ...OPTIONS, threads: 2, memoryBytes: 4 * 2 ** 20 });
    assert(parted.notes.some((note) => note.includes("WASM memories")));
    const narrow = countNarrow(parted);
    for (const options of CHAINS.slice(0, 2)) {
      using a = parted.createSession();
      using b = whole.createSession();
      assertEquals(await answer(a, options), await answer(b, options));
    }
    assertEquals(narrow.count, 48);
  } finally {
    await Deno.remove(path);
  }
});
