// Keys and values in Q8_0, asked for: half the memory, nearly the same answers, whatever is done to a session.

import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import {
  FormatError,
  generate,
  load,
  type LoadOptions,
  type Model,
  UnsupportedError,
} from "../mod.ts";
import { gpuTest } from "./support/gpu.ts";
import { loadTiny } from "./support/models.ts";
import { writeRandomLlama } from "./support/random_llama.ts";

const SHAPE = {
  ...{ layers: 2, hidden: 192, heads: 6, kvHeads: 2, headDim: 32 },
  ...{ feedForward: 256, vocabulary: 320, context: 256 },
} as const;
const PROMPT = Array.from({ length: 90 }, (_, i) => 260 + (i * 17) % 60);

async function withModel(
  options: LoadOptions,
  run: (model: Model, path: string) => Promise<void>,
): Promise<void> {
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    await writeRandomLlama(path, SHAPE, "Q8_0");
    using model = await load(path, { device: "wasm", kvFormat: "Q8_0", ...options });
    await run(model, path);
  } finally {
    await Deno.remove(path);
  }
}

async function logitsOf(model: Model, tokens: readonly number[]): Promise<number[]> {
  using session = model.createSession();
  await session.sync(tokens);
  return [...session.logits()];
}

function worst(a: readonly number[], b: readonly number[]): number {
  return Math.max(...a.map((value, i) => Math.abs(value - b[i]!)));
}

Deno.test("a cache in Q8_0 takes 17 of the 32 bytes of one in F16, and moves logits by little", async () => {
  await withModel({}, async (model, path) => {
    using half = await load(path, { device: "wasm", kvFormat: "F16" });
    assertEquals(model.info.kvFormat, "Q8_0");
    assertEquals(model.memory.sessionCache, half.memory.sessionCache * 17 / 32);
    const [expected, actual] = [await logitsOf(half, PROMPT), await logitsOf(model, PROMPT)];
    const spread = Math.max(...expected) - Math.min(...expected);
    const off = worst(actual, expected);
    assert(off > 0, "the caches are the same");
    assertLess(off, 0.02 * spread);
  });
});

Deno.test("a cache in Q8_0 is the reference's: the same logits, on any threads and in any chunks", async () => {
  const exact = { precision: "exact" } as const;
  await withModel(exact, async (model, path) => {
    const prompt = PROMPT.slice(0, 16);
    const actual = await logitsOf(model, prompt);
    using reference = await load(path, { ...exact, device: "reference", kvFormat: "Q8_0" });
    const expected = await logitsOf(reference, prompt);
    assertLess(worst(actual, expected), 1e-3 * Math.max(...expected.map(Math.abs)));
    using one = await load(path, { ...exact, device: "wasm", kvFormat: "Q8_0", threads: 1 });
    assertEquals(await logitsOf(one, prompt), actual);
    // A row alone takes its query in 16 bit, a chunk does not.
    using small = await load(path, { ...exact, device: "wasm", kvFormat: "Q8_0", batch: 1 });
    assertLess(
      worst(await logitsOf(small, prompt), actual),
      1e-3 * Math.max(...actual.map(Math.abs)),
    );
  });
});

Deno.test("a session in Q8_0 is saved, restored and rewound", async () => {
  await withModel({ sessions: 2 }, async (model, path) => {
    using session = model.createSession();
    await session.sync(PROMPT.slice(0, 40));
    const saved = await session.save();
    await session.eval(PROMPT.slice(40, 44));
    const expected = [...session.logits()];
    using other = model.createSession();
    await other.load(saved);
    await other.eval(PROMPT.slice(40, 44));
    assertEquals([...other.logits()], expected);
    session.rewind(40);
    await session.eval(PROMPT.slice(40, 44));
    assertEquals([...session.logits()], expected);
    using half = await load(path, { device: "wasm", kvFormat: "F16" });
    using wrong = half.createSession();
    await assertRejects(() => wrong.load(saved), FormatError, "another cache format");
  });
});

gpuTest(
  "a cache in Q8_0 on the GPU is the reference's, and a session goes on elsewhere",
  async () => {
    const exact = { precision: "exact" } as const;
    await withModel({ ...exact, device: "gpu", sessions: 2 }, async (model, path) => {
      const prompt = PROMPT.slice(0, 12);
      using session = model.createSession();
      await session.sync(prompt);
      using reference = await load(path, { ...exact, device: "reference", kvFormat: "Q8_0" });
      const expected = await logitsOf(reference, prompt);
      const tolerance = 1e-3 * Math.max(...expected.map(Math.abs));
      assertLess(worst([...session.logits()], expected), tolerance);
      const saved = await session.save();
      // Rows alone, which are stored on the way into their own attention.
      for (const token of [261, 270, 281]) await session.eval([token]);
      using elsewhere = reference.createSession();
      await elsewhere.load(saved);
      await elsewhere.eval([261, 270, 281]);
      assertLess(worst([...session.logits()], [...elsewhere.logits()]), tolerance);
      using again = model.createSession();
      await again.load(await elsewhere.save());
      await again.eval([265]);
      await session.eval([265]);
      assertLess(worst([...session.logits()], [...again.logits()]), tolerance);
    });
  },
);

Deno.test("a cache in Q8_0 is refused by name where it cannot be had", async () => {
  await assertRejects(
    () => loadTiny({ device: "wasm", kvFormat: "Q8_0" }),
    UnsupportedError,
    "heads of 8 channels, and Q8_0 is for multiples of 32. Use kvFormat F16",
  );
  await withModel({}, async (model) => {
    assertEquals(
      (await generate(model, "a", { maxTokens: 3, ignoreEos: true }).result).ids.length,
      3,
    );
  });
});
