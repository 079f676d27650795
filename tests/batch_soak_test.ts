// Many queries that come when they like, leave early, fail and are slow to read, on a model with few places and a small
// pool of cache rows: what each has read is what it reads alone, and afterwards nothing goes on. Nothing here looks at a
// clock: who waits, waits for turns of the event loop, so many as a seed says.

import { assert, assertEquals } from "@std/assert";
import { generate } from "../engine/decode/generate.ts";
import type { GenerateOptions } from "../engine/decode/generate_options.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import type { Model } from "../engine/decode/model.ts";
import { createRandom, nextDouble } from "../engine/decode/sampling/random.ts";
import { pause } from "../engine/pause.ts";
import { loadLongTiny, loadTiny } from "./support/models.ts";

/** How a query ends, if not by itself. */
type Fate = "whole" | "abort" | "leave" | "dispose" | "bad token" | "too long" | "bad sampler";

const FATES: readonly Fate[] = [
  ...["whole", "whole", "whole", "whole", "whole"] as const,
  ...["abort", "leave", "dispose", "bad token", "too long", "bad sampler"] as const,
];

interface Query {
  readonly prompt: readonly number[];
  readonly options: GenerateOptions;
  readonly fate: Fate;
  /** Chunks after which that happens. */
  readonly after: number;
  /** Turns before it comes, and between two chunks. */
  readonly comes: number;
  readonly reads: number;
}

function randomQueries(count: number, seed: number): Query[] {
  const random = createRandom(seed);
  const below = (limit: number) => Math.floor(nextDouble(random) * limit);
  const common = Array.from({ length: 70 }, () => 3 + below(280));
  return Array.from({ length: count }, (_, index) => {
    const fate = FATES[below(FATES.length)]!;
    const own = Array.from({ length: 1 + below(below(3) ? 12 : 60) }, () => 3 + below(280));
    const prompt = below(3) ? own : [...common, ...own];
    return {
      prompt: fate === "too long" ? new Array(400).fill(5) : prompt,
      options: {
        ...{ maxTokens: 1 + below(40), ignoreEos: true, seed: index, priority: below(5) - 2 },
        ...below(2) && { temperature: 1, topK: 20 },
        ...below(4) === 0 && { logprobs: 1 },
      },
      ...{ fate, after: below(6), comes: below(40), reads: below(4) ? 0 : below(9) },
    };
  });
}

/** What a query has read, and how it ended. */
async function run(model: Model, query: Query, isAlone: boolean) {
  const { fate, after } = query;
  const wait = async (turns: number) => {
    for (let i = 0; i < turns && !isAlone; i++) await pause();
  };
  const controller = new AbortController();
  let left = after;
  const failing = () => {
    if (left-- <= 0) throw new Error("the sampler broke");
  };
  const prompt = fate === "bad token" ? [...query.prompt, 4000] : query.prompt;
  await wait(query.comes);
  const tokens: unknown[] = [];
  try {
    const { temperature: _, topK: __, ...rest } = query.options;
    const broken = { ...rest, samplers: [failing, "greedy"] };
    const generation = generate(model, prompt, {
      ...fate === "bad sampler" ? broken : query.options,
      signal: controller.signal,
    });
    let chunks = 0;
    for await (const chunk of generation) {
      tokens.push(...chunk.tokens);
      if (chunks++ === after) {
        if (fate === "leave") break;
        if (fate === "abort") controller.abort();
        if (fate === "dispose") generation[Symbol.dispose]();
      }
      await wait(query.reads);
    }
    return { tokens, end: (await generation.result).finishReason };
  } catch (error) {
    return { tokens, end: (error as Error).message.replace(/^\S+: /, "") }; // without the file
  }
}

for (const seed of [1, 2, 3]) {
  Deno.test(`32 queries with cancels and failures have the answers of each alone, and leave nothing behind (seed ${seed})`, async () => {
    const loadModel = () =>
      loadLongTiny({
        ...{ device: "wasm", contextLength: 192, cacheTokens: 384, sessions: 5, batch: 40 },
      });
    const queries = randomQueries(32, seed);
    const expected = [];
    // Each alone in another model, or the others would find its rows.
    using alone = await loadModel();
    for (const query of queries) expected.push(await run(alone, query, true));
    using model = await loadModel();
    const { executable } = (model as LoadedModel).runtime;
    const { run: runStep } = executable;
    let steps = 0, most = 0;
    executable.run = (step) => {
      steps++;
      most = Math.max(most, new Set(step.slots.subarray(0, step.count)).size);
      return runStep(step);
    };
    const actual = await Promise.all(queries.map((query) => run(model, query, false)));
    assertEquals(actual, expected);
    assert(most >= 4, `at most ${most} queries in a step`);
    // Idle: nothing goes on, and all places are free.
    const before = steps;
    for (let i = 0; i < 30; i++) await pause();
    assertEquals(steps, before);
    const sessions = Array.from({ length: 5 }, () => model.createSession());
    await Promise.all(sessions.map((session, i) => session.sync([i + 3])));
  });
}

// pc-ctx-02: generating past a small context with several slots went on for ever.
Deno.test("four answers that outgrow a context of 64 end, and each as it ends alone", async () => {
  using model = await loadTiny({ device: "wasm", contextLength: 64, sessions: 4 });
  for (const onContextFull of ["stop", "slide", "error"] as const) {
    const answer = async (first: number) => {
      const options = { maxTokens: 500, ignoreEos: true, onContextFull, keep: 2 };
      try {
        const { ids, finishReason } = await generate(model, [first, 5, 6], options).result;
        return { ids, end: finishReason };
      } catch (error) {
        return { ids: [], end: (error as Error).message };
      }
    };
    const alone = [];
    for (let i = 0; i < 4; i++) alone.push(await answer(i + 3));
    const together = await Promise.all([0, 1, 2, 3].map((i) => answer(i + 3)));
    assertEquals(together, alone);
    assertEquals(together[0]!.ids.length, { stop: 62, slide: 500, error: 0 }[onContextFull]);
  }
});

// pc-kv-03: two calls at once on one model lost both answers; one that is too long has to fail alone.
Deno.test("a prompt that is too long fails alone", async () => {
  using model = await loadTiny({ device: "wasm", contextLength: 64, sessions: 2 });
  const options = { maxTokens: 8, ignoreEos: true };
  const { ids } = await generate(model, [3, 4], options).result;
  const outcomes = await Promise.allSettled([
    generate(model, [3, 4], options).result,
    generate(model, new Array(80).fill(4), options).result,
    generate(model, [3, 4], options).result,
  ]);
  assertEquals(outcomes.map((one) => one.status === "fulfilled" ? one.value.ids : "failed"), [
    ...[ids, "failed", ids],
  ]);
});
