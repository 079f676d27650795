// Many queries on one model at a time: each gets the answer that it gets alone, whatever the others are, whenever they
// come and leave, and with a pool of cache rows that is too small for all of them.

import { assert, assertEquals } from "@std/assert";
import { generate } from "../engine/decode/generate.ts";
import type { GenerateOptions } from "../engine/decode/generate_options.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import type { LoadOptions, Model } from "../engine/decode/model.ts";
import { createRandom, nextDouble } from "../engine/decode/sampling/random.ts";
import { pause } from "../engine/pause.ts";
import { beamSearch } from "../mod.ts";
import { randomPair, writeGgufAdapter } from "./support/adapters.ts";
import { fixturePath } from "./support/fixtures.ts";
import { gpuTest } from "./support/gpu.ts";
import { load } from "../engine/models/load.ts";
import { loadLongTiny, loadTiny } from "./support/models.ts";
import { withQuantized } from "./support/quantized_llama.ts";

const SAMPLERS: readonly GenerateOptions[] = [
  {},
  { temperature: 0.9, topK: 20, topP: 0.9 },
  { temperature: 1.1, repeatPenalty: 1.2 },
  { temperature: 0.8, minP: 0.05, samplers: ["top_k", "min_p", "temperature"], topK: 30 },
  { mirostat: 2 },
];

/** A prompt and how it is answered. */
interface Query {
  readonly prompt: readonly number[];
  readonly options: GenerateOptions;
}

function randomQueries(
  count: number,
  { seed, vocabulary = 288, adapters = true }: {
    readonly seed: number;
    readonly vocabulary?: number;
    readonly adapters?: boolean;
  },
): Query[] {
  const random = createRandom(seed);
  const below = (limit: number) => Math.floor(nextDouble(random) * limit);
  return Array.from({ length: count }, (_, index) => ({
    prompt: Array.from({ length: 1 + below(index % 3 ? 8 : 40) }, () => 3 + below(vocabulary - 8)),
    options: {
      ...SAMPLERS[below(SAMPLERS.length)],
      ...{ seed: index, maxTokens: 1 + below(14), ignoreEos: true, priority: below(5) - 2 },
      ...below(3) === 0 && { logprobs: 2 },
      ...adapters && below(3) === 0 && { adapters: { first: 0.5 } },
    },
  }));
}

/** Tokens with what was asked of them. */
async function answer(model: Model, { prompt, options }: Query) {
  const tokens = [];
  for await (const chunk of generate(model, prompt, options)) tokens.push(...chunk.tokens);
  return tokens;
}

/** Makes a model; those alone have one of their own, or the others would find their rows in its caches. */
type Loader = () => Promise<Model>;

async function solo(loadModel: Loader, queries: readonly Query[]) {
  using model = await loadModel();
  const answers = [];
  for (const query of queries) answers.push(await answer(model, query));
  return answers;
}

/** How many rows each step had. */
function countRows(model: Model): number[] {
  const { executable } = (model as LoadedModel).runtime;
  const { run } = executable;
  const rows: number[] = [];
  executable.run = (step) => {
    rows.push(step.count);
    return run(step);
  };
  return rows;
}

/** Loads the tiny llama with an adapter that changes its answers. */
async function loadAdapted(options: LoadOptions): Promise<Model> {
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    const shapes: [string, number[]][] = [
      ["blk.0.attn_q.weight", [32, 32]],
      ["blk.1.ffn_down.weight", [32, 64]],
    ];
    writeGgufAdapter(path, shapes.map(([name, shape]) => randomPair(name, shape, 8)), {
      "general.architecture": ["string", "llama"],
      "adapter.lora.alpha": ["f32", 4],
    });
    return await loadTiny({
      ...{ contextLength: 64, sessions: 6, batch: 24, adapters: [{ path, name: "first" }] },
      ...options,
    });
  } finally {
    await Deno.remove(path);
  }
}

/** Answers of queries alone, then those of all at once. */
async function bothWays(loadModel: Loader, queries: readonly Query[]) {
  const alone = await solo(loadModel, queries);
  using model = await loadModel();
  const rows = countRows(model);
  const together = await Promise.all(queries.map((query) => answer(model, query)));
  assert(Math.max(...rows) > 6, `at most ${Math.max(...rows)} rows in a step`);
  return { alone, together, rows };
}

for (const device of ["reference", "wasm"] as const) {
  const queries = randomQueries(device === "wasm" ? 24 : 8, { seed: 3 });
  for (const precision of ["fast", "exact"] as const) {
    for (const kvFormat of device === "wasm" ? ["F16", "F32"] as const : ["F32"] as const) {
      Deno.test(`${device}, ${precision}, ${kvFormat}: queries together have the bits of each alone`, async () => {
        const loadModel = () => loadAdapted({ device, precision, kvFormat });
        const { alone, together } = await bothWays(loadModel, queries);
        assertEquals(together, alone);
      });
    }
  }
}

for (
  const [format, options] of [["lf8", { precision: "strict" }], ["q8_0", {
    kvFormat: "Q8_0",
  }]] as const
) {
  Deno.test(`wasm, ${format}, ${JSON.stringify(options)}: queries together have the bits of each alone`, () =>
    withQuantized(format, async (path) => {
      const sizes = { contextLength: 64, sessions: 6, batch: 24 };
      const loadModel = () => load(path, { device: "wasm", ...sizes, ...options });
      using model = await loadModel();
      const queries = randomQueries(16, {
        seed: 4,
        vocabulary: model.info.vocabulary,
        adapters: false,
      });
      const { alone, together } = await bothWays(loadModel, queries);
      assertEquals(together, alone);
    }));
}

gpuTest(
  "on WebGPU queries together have the tokens of each alone, and log-probabilities near theirs",
  async () => {
    const loadModel = () => loadAdapted({ device: "gpu" });
    const { alone, together } = await bothWays(loadModel, randomQueries(8, { seed: 3 }));
    for (const [index, tokens] of together.entries()) {
      assertEquals(tokens.map(({ id }) => id), alone[index]!.map(({ id }) => id));
      for (const [place, { logProbability = 0 }] of tokens.entries()) {
        const expected = alone[index]![place]!.logProbability ?? 0;
        assert(Math.abs(logProbability - expected) < 1e-3, `${logProbability} for ${expected}`);
      }
    }
  },
);

Deno.test("with room for two of six texts the youngest gives up its rows, and all have the answers of each alone", async () => {
  const sizes = { contextLength: 128, cacheTokens: 192, batch: 48 };
  const loadModel = () => loadLongTiny({ device: "wasm", sessions: 6, ...sizes });
  const queries = randomQueries(9, { seed: 8, adapters: false }).map(({ prompt, options }) => ({
    prompt,
    options: { ...options, maxTokens: 60 + prompt.length % 9 },
  }));
  const alone = await solo(loadModel, queries);
  using model = await loadModel();
  const truncated = countGivenUp(model);
  const together = await Promise.all(queries.map((query) => answer(model, query)));
  assertEquals(together, alone);
  assert(truncated.count > 0, "nobody had to give up rows");
});

/** How often somebody who is not at the end of his answer gives up all his rows. */
function countGivenUp(model: Model): { count: number } {
  const { executable: { rows } } = (model as LoadedModel).runtime;
  const given = { count: 0 };
  const { truncate } = rows;
  rows.truncate = (slot, length) => {
    if (length === 0) given.count++;
    return truncate(slot, length);
  };
  return given;
}

Deno.test("a short query that meets a prompt of 2,000 tokens has its first token in the second step at the latest", async () => {
  using model = await loadLongTiny({
    ...{ device: "wasm", contextLength: 2100, sessions: 3, batch: 64 },
  });
  const rows = countRows(model);
  const long = Array.from({ length: 2000 }, (_, i) => 3 + i * 7 % 280);
  const prompt = generate(model, long, { maxTokens: 1 }).result;
  while (rows.length < 5) await pause();
  const before = rows.length;
  const options = { maxTokens: 4, ignoreEos: true };
  for await (const { tokens } of generate(model, [5, 6, 7, 8, 9], options)) {
    if (tokens.length === 0) continue;
    assert(rows.length - before <= 2, `${rows.length - before} steps`);
    break;
  }
  assert(rows.length < 20, "the prompt was read to its end first");
  await prompt;
});

Deno.test("searches with beams beside each other, over sources that share no step with them, find what each finds alone", async () => {
  const loadModel = () =>
    load(fixturePath("models/m2m100"), {
      ...{ device: "reference", sessions: 12, precision: "exact" },
    });
  using one = await loadModel();
  using model = await loadModel();
  const sources = [[5, 9, 2], [7, 30, 12, 44, 2], [3, 2]];
  const search = (model: Model, source: readonly number[]) =>
    beamSearch(model, source, { beams: 3, maxTokens: 6, endIds: [2] });
  const alone = [];
  for (const source of sources) alone.push(await search(one, source));
  const rows = countRows(model);
  assertEquals(await Promise.all(sources.map((source) => search(model, source))), alone);
  assert(Math.max(...rows) > 3, "no step had rows of two searches");
});

Deno.test("a model takes sixteen answers at once unless asked otherwise", async () => {
  using model = await loadTiny({ device: "wasm" });
  using one = await loadTiny({ device: "wasm", sessions: 1 });
  assertEquals([model.memory.sessions, model.memory.cacheTokens], [16, 16 * 64]);
  assertEquals([one.memory.sessions, one.memory.cacheTokens], [1, 64]);
  const rows = countRows(model);
  const options = { maxTokens: 4, ignoreEos: true };
  const { ids } = await generate(one, [3, 4], options).result;
  const answers = await Promise.all(
    Array.from({ length: 16 }, () => generate(model, [3, 4], options).result),
  );
  for (const answer of answers) assertEquals(answer.ids, ids);
  assertEquals(rows.slice(-3), [16, 16, 16]);
});

Deno.test("a source is read once, in a step of its own, whatever is written from it and beside it", async () => {
  using model = await load(fixturePath("models/m2m100"), {
    ...{ device: "reference", sessions: 3, precision: "exact", contextLength: 48 },
  });
  const { executable } = (model as LoadedModel).runtime;
  const { run } = executable;
  const steps: { readonly isSource: boolean; readonly count: number }[] = [];
  executable.run = (step) => {
    steps.push({ isSource: step.isSource ?? false, count: step.count });
    return run(step);
  };
  const write = async (source: readonly number[]) => {
    using session = model.createSession();
    await session.encode(source);
    const ids = [2];
    while (ids.length < 8) {
      await session.eval([ids.at(-1)!]);
      const logits = session.logits();
      ids.push(logits.indexOf(Math.max(...logits)));
    }
    return ids;
  };
  const sources = [[13, 45, 91, 26, 100, 2], [5, 9, 2], [7, 30, 12, 44, 2]];
  const alone = [];
  for (const source of sources) alone.push(await write(source));
  const rowsOf = (isSource: boolean) =>
    steps.reduce((sum, step) => sum + (step.isSource === isSource ? step.count : 0), 0);
  assertEquals([rowsOf(true), rowsOf(false)], [6 + 3 + 5, 3 * 7]);
  steps.length = 0;
  assertEquals(await Promise.all(sources.map(write)), alone);
  assertEquals([rowsOf(true), rowsOf(false)], [6 + 3 + 5, 3 * 7]);
});
