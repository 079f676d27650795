// Weights that come and go: what a model computes is what it computes held whole, bit by bit, whatever is in memory at
// once, and what it takes and reads is what was planned.

import { assert, assertAlmostEquals, assertEquals, assertMatch, assertRejects } from "@std/assert";
import {
  DeviceError,
  inspectModel,
  load,
  type LoadOptions,
  type Model,
  ResourceError,
  UnsupportedError,
} from "../mod.ts";
import type { MetadataValue } from "../engine/formats/source.ts";
import { readFixture } from "./support/fixtures.ts";
import { gpuTest } from "./support/gpu.ts";
import { GGUF_RULES } from "./support/gguf_rules.ts";
import { writeRandomLlama } from "./support/random_llama.ts";
import { checkpointPath } from "./support/seeded_weights.ts";
import { toGguf } from "./support/to_gguf.ts";

const SHAPE = {
  ...{ layers: 5, hidden: 256, heads: 4, kvHeads: 2, headDim: 64 },
  ...{ feedForward: 768, vocabulary: 600, context: 512 },
} as const;
const PROMPT = Array.from({ length: 70 }, (_, i) => 20 + (i * 37) % 100);
const OPTIONS: LoadOptions = { device: "wasm", contextLength: 128, batch: 32, sessions: 2 };

async function withFile(
  write: (path: string) => Promise<void>,
  run: (path: string) => Promise<void>,
): Promise<void> {
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    await write(path);
    await run(path);
  } finally {
    await Deno.remove(path);
  }
}

const withLlama = (run: (path: string) => Promise<void>, format = "Q4_0") =>
  withFile((path) => writeRandomLlama(path, SHAPE, format), run);

/** Two sessions side by side, in chunks and token by token. */
async function logitsOf(model: Model): Promise<number[][]> {
  using a = model.createSession();
  using b = model.createSession();
  await a.sync(PROMPT);
  await b.sync(PROMPT.slice(30));
  const results = [[...a.logits()]];
  for (const token of [61, 30, 44]) {
    await Promise.all([a.eval([token]), b.eval([token + 1])]);
    results.push([...a.logits()], [...b.logits()]);
  }
  return results;
}

Deno.test("a model whose weights are streamed computes what it computes held whole", () =>
  withLlama(async (path) => {
    using whole = await load(path, OPTIONS);
    const expected = await logitsOf(whole);
    const streams: LoadOptions[] = [
      { stream: true },
      { stream: { depth: 1 } },
      { stream: { depth: 1, loaders: 0 } },
      { stream: { depth: 2, loaders: 3 }, threads: 1 },
      { stream: { depth: 2, bytesPerSecond: 1e9 }, precision: "fast" },
    ];
    for (const stream of streams) {
      using model = await load(path, { ...OPTIONS, ...stream });
      assertEquals(await logitsOf(model), expected);
      const { weights, streamed } = model.memory;
      assert(weights < whole.memory.weights, `${weights} of ${whole.memory.weights}`);
      const depth = (stream.stream as { depth?: number }).depth ?? 2;
      const layer = whole.memory.weights - (weights - streamed!.slots);
      // Embedding and head stay, and a small table of words in front of the slots.
      assertAlmostEquals(streamed!.slots, depth / SHAPE.layers * layer, 4096);
      assertMatch(model.notes.at(-1)!, /every step reads .* MB of weights/);
    }
  }));

Deno.test("as many layers stay as there is room for, and what fits no way is refused with what would", () =>
  withLlama(async (path) => {
    using whole = await load(path, OPTIONS);
    const expected = await logitsOf(whole);
    const total = whole.memory.total - whole.memory.other;
    const { memory: least } = await inspectModel(path, { ...OPTIONS, stream: { depth: 1 } });
    const tooFew = least.total;
    const error = await assertRejects(
      () => load(path, { ...OPTIONS, maxHostBytes: tooFew }),
      ResourceError,
      "MB of memory at least",
    );
    // Asked before, the same is told, with the least that it takes.
    const told = await inspectModel(path, { ...OPTIONS, maxHostBytes: tooFew });
    assertEquals(told.info.warnings.filter((text) => text === error.message).length, 1);
    assertEquals(told.memory, least);
    // With room for program, tables and scratch memory.
    const enough = Number(/maxHostBytes (\d+)/.exec(error.message)![1]);
    const reads: number[] = [];
    for (const part of [0, 0.5, 0.9]) {
      const maxHostBytes = Math.ceil(enough + part * (total - least.total));
      using model = await load(path, { ...OPTIONS, maxHostBytes });
      assert(model.memory.total <= maxHostBytes);
      assertEquals(await logitsOf(model), expected);
      reads.push(model.memory.streamed!.stepBytes);
    }
    assert(reads[0]! > reads[1]! && reads[1]! > reads[2]!, reads.join());
    using fits = await load(path, { ...OPTIONS, maxHostBytes: total + 2 * (enough - tooFew) });
    assertEquals(fits.memory.streamed, undefined);
    await assertRejects(
      () => load(path, { ...OPTIONS, stream: false, maxHostBytes: tooFew }),
      ResourceError,
    );
  }));

Deno.test("a model that takes more than the memory that is free is streamed, unless that is not wanted", () =>
  withFile((path) => writeRandomLlama(path, { ...SHAPE, layers: 12 }, "Q8_0"), async (path) => {
    // Each thread has room of its own, which such a memory has not for many.
    const threads = Math.min(2, navigator.hardwareConcurrency);
    const options = { ...OPTIONS, threads, memoryBytes: 2 ** 24 };
    using whole = await load(path, options);
    const expected = await logitsOf(whole);
    assertEquals(whole.memory.streamed, undefined);
    const real = Deno.systemMemoryInfo;
    try {
      const available = Math.floor(0.95 * (whole.memory.total - whole.memory.other));
      Deno.systemMemoryInfo = () => ({ ...real(), available, swapFree: 0 });
      using model = await load(path, options);
      assert(model.memory.streamed!.stepBytes > 0 && model.memory.total <= available);
      assertMatch(model.notes.at(-1)!, /every step reads .* MB of weights/);
      assertEquals(await logitsOf(model), expected);
      await assertRejects(() => load(path, { ...options, stream: false }), ResourceError);
    } finally {
      Deno.systemMemoryInfo = real;
    }
  }));

Deno.test("a step of many rows reads each layer once, and prompts cost as many bytes as tokens", () =>
  withLlama(async (path) => {
    using model = await load(path, { ...OPTIONS, stream: { depth: 1, loaders: 0 } });
    using session = model.createSession();
    model.streaming();
    await session.sync(PROMPT.slice(0, 32));
    assertEquals(model.streaming()!.steps, 1);
    await session.eval([40]);
    const { steps, hidden } = model.streaming()!;
    assertEquals([steps, hidden], [1, 0], "nobody loads while something computes");
  }));

for (const folder of ["qwen3_moe", "gpt_oss"]) {
  Deno.test(`experts of ${folder} come when they are chosen, and those chosen lately stay`, async () => {
    const config: Readonly<Record<string, MetadataValue>> = JSON.parse(
      readFixture(`models/${folder}/config.v4.json`),
    );
    const [rule] = GGUF_RULES[folder]!;
    await withFile(
      async (path) => Deno.writeFile(path, await toGguf(checkpointPath(folder), config, rule!)),
      async (path) => {
        for (const precision of ["fast", "exact"] as const) {
          const options: LoadOptions = { ...OPTIONS, precision, spec: rule!.spec };
          using whole = await load(path, options);
          const expected = await logitsOf(whole);
          const caches: NonNullable<LoadOptions["stream"]>[] = [
            true,
            { expertCacheBytes: 0 },
            { expertCacheBytes: 2 ** 30 },
            { expertCacheBytes: 0, loaders: 0 },
          ];
          const hits: number[] = [];
          for (const stream of caches) {
            using model = await load(path, { ...options, stream });
            assertEquals(await logitsOf(model), expected, JSON.stringify(stream));
            const { experts } = model.streaming()!;
            hits.push(experts!.hits / (experts!.hits + experts!.misses));
            assert(model.memory.streamed!.experts > 0);
          }
          assert(hits[2]! > hits[0]! && hits[2]! > hits[1]!, hits.join());
        }
      },
    );
  });
}

Deno.test("a file that shrinks or goes ends a step with an error of the device, and nothing hangs", () =>
  withLlama(async (path) => {
    using model = await load(path, { ...OPTIONS, stream: { depth: 1 } });
    using session = model.createSession();
    await session.sync(PROMPT);
    const { size } = Deno.statSync(path);
    const end = Deno.readFileSync(path).subarray(size / 4);
    Deno.truncateSync(path, size / 4);
    for (let again = 0; again < 2; again++) {
      const error = await assertRejects(() => session.eval([40]), DeviceError);
      assertMatch(error.message, /blk\.\d.*: a streamed weight cannot be read any more/);
    }
    using file = Deno.openSync(path, { append: true });
    for (let done = 0; done < end.length;) done += file.writeSync(end.subarray(done));
    using other = model.createSession();
    await other.sync(PROMPT);
    await other.eval([40]);
  }));

Deno.test("what cannot be streamed is refused by name", () =>
  withLlama(async (path) => {
    await assertRejects(
      () => load(path, { ...OPTIONS, device: "reference", stream: true }),
      UnsupportedError,
      "device reference",
    );
    await assertRejects(
      () => load(path, { ...OPTIONS, placement: "cpu", stream: true }),
      UnsupportedError,
      "with a placement",
    );
    for (const stream of [{ depth: 3 }, { depths: 1 }, { loaders: -1 }]) {
      await assertRejects(() => load(path, { stream: stream as never }), RangeError);
    }
  }));

gpuTest(
  "on the GPU a model whose weights are streamed computes what it computes held whole",
  () =>
    withLlama(async (path) => {
      const options: LoadOptions = { ...OPTIONS, device: "gpu" };
      using whole = await load(path, options);
      const expected = await logitsOf(whole);
      for (const depth of [1, 2] as const) {
        using model = await load(path, { ...options, stream: { depth } });
        assert(model.memory.weights < whole.memory.weights);
        assertEquals(await logitsOf(model), expected);
        const { steps, loadMs, hidden } = model.streaming()!;
        assert(steps > 0 && loadMs > 0 && hidden >= 0 && hidden <= 1);
      }
      using model = await load(path, { ...options, stream: true });
      using session = model.createSession();
      await session.sync(PROMPT);
      Deno.truncateSync(path, Deno.statSync(path).size / 4);
      await assertRejects(() => session.eval([40]), DeviceError, "cannot be read any more");
    }),
);

/** What a process holds at most that loads a model and fills some of its context. */
async function peakOf(
  path: string,
  options: LoadOptions,
): Promise<{ peak: number; total: number }> {
  const args = ["run", "-A", "--no-check", import.meta.resolve("./support/peak_memory.ts"), path];
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args, JSON.stringify(options)],
  }).output();
  const text = new TextDecoder();
  assert(stdout.length > 0, text.decode(stderr));
  const { peak, memory } = JSON.parse(text.decode(stdout));
  return { peak, total: memory.total };
}

Deno.test("a process that streams holds what it held before, slots and caches", async () => {
  const large = {
    ...{ layers: 24, hidden: 768, heads: 12, kvHeads: 4, headDim: 64 },
    ...{ feedForward: 3072, vocabulary: 600, context: 512 },
  } as const;
  const small = { ...large, layers: 1, hidden: 64, heads: 1, kvHeads: 1, feedForward: 64 };
  await withFile(
    (path) => writeRandomLlama(path, small, "Q4_0"),
    (empty) =>
      withFile((path) => writeRandomLlama(path, large, "Q4_0"), async (path) => {
        const options = { contextLength: 256, batch: 16, sessions: 1 };
        const before = await peakOf(empty, options);
        const whole = await peakOf(path, options);
        const streamed = await peakOf(path, { ...options, stream: { depth: 1 } });
        // Two threads more, an instance of the machine's module each.
        const threads = 2 * 14e6;
        const bound = 1.1 * (before.peak + threads + streamed.total);
        assert(streamed.peak <= bound, `${streamed.peak} of ${bound}`);
        assert(streamed.total < whole.total / 3 && streamed.peak < whole.peak - 50e6);
      }),
  );
});
