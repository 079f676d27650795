// A model over several WASM memories: what it computes is what it computes in one, bit by bit. Memories of a few
// megabytes stand for those of 4 GiB.

import { assert, assertEquals, assertNotEquals, assertRejects, assertThrows } from "@std/assert";
import {
  inspectModel,
  load,
  type LoadOptions,
  type Model,
  type ModelProgress,
  ResourceError,
} from "../mod.ts";
import { randomPair, writeGgufAdapter } from "./support/adapters.ts";
import { writeRandomLlama } from "./support/random_llama.ts";

const SHAPE = {
  ...{ layers: 5, hidden: 256, heads: 4, kvHeads: 2, headDim: 64 },
  ...{ feedForward: 768, vocabulary: 600, context: 512 },
} as const;
const PROMPT = Array.from({ length: 70 }, (_, i) => 260 + (i * 37) % 300);
const MIB = 2 ** 20;
/** What threads have for themselves is no part that can be cut, so a machine of many gets two. */
const OPTIONS: LoadOptions = {
  ...{ device: "wasm", threads: 2 },
  ...{ contextLength: 256, batch: 32, sessions: 2 },
};

async function withFile(run: (path: string) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    await writeRandomLlama(path, SHAPE, "Q8_0");
    await run(path);
  } finally {
    await Deno.remove(path);
  }
}

/** Two sessions side by side, in chunks and token by token. */
async function logitsOf(model: Model): Promise<number[][]> {
  using a = model.createSession();
  using b = model.createSession();
  await a.sync(PROMPT);
  await b.sync(PROMPT.slice(30));
  const results = [[...a.logits()]];
  for (const token of [261, 300, 444]) {
    await a.eval([token]);
    await b.eval([token + 1]);
    results.push([...a.logits()], [...b.logits()]);
  }
  return results;
}

Deno.test("over several memories the logits are those of one, and sessions pass from one to the other", () =>
  withFile(async (path) => {
    using whole = await load(path, OPTIONS);
    const expected = await logitsOf(whole);
    for (const more of [{ memoryBytes: 3 * MIB }, { memoryBytes: 4 * MIB, threads: 1 }]) {
      const { memory } = await inspectModel(path, { ...OPTIONS, ...more });
      using parted = await load(path, { ...OPTIONS, ...more });
      const count = memory.memories!.length;
      assert(count > 2, `${count} memories`);
      assert(memory.memories!.every((bytes) => bytes < more.memoryBytes));
      assertEquals(parted.notes, [
        `the model lies in ${count} WASM memories, because one does not hold it`,
      ]);
      assertEquals(parted.memory.sessionCache, whole.memory.sessionCache);
      assertEquals(await logitsOf(parted), expected);

      using session = parted.createSession();
      await session.sync(PROMPT);
      const saved = await session.save();
      using other = whole.createSession();
      await other.load(saved);
      await other.eval([261]);
      assertEquals([...other.logits()], expected[1]);
      assertEquals(await saveOf(whole, PROMPT), saved);
      session.rewind(0);
      await session.load(saved);
      await session.eval([261]);
      assertEquals([...session.logits()], expected[1]);
    }
  }));

async function saveOf(model: Model, tokens: readonly number[]): Promise<Uint8Array> {
  using session = model.createSession();
  await session.sync(tokens);
  return await session.save();
}

Deno.test("all slots of all memories are closed together, and a disposed model says so", () =>
  withFile(async (path) => {
    const parted = await load(path, { ...OPTIONS, memoryBytes: 3 * MIB });
    const first = parted.createSession();
    const second = parted.createSession();
    assertThrows(() => parted.createSession(), ResourceError, "all 2 slots are taken");
    first.dispose();
    using third = parted.createSession();
    await third.sync(PROMPT);
    await second.sync(PROMPT);
    assertEquals([...third.logits()], [...second.logits()]);
    second.dispose();
    parted.dispose();
  }));

Deno.test("an adapter works on the layers of every memory, by session", () =>
  withFile(async (path) => {
    const adapter = `${path}.adapter.gguf`;
    const { hidden, layers } = SHAPE;
    const pairs = Array.from(
      { length: layers },
      (_, layer) => randomPair(`blk.${layer}.attn_output.weight`, [hidden, hidden], 4),
    );
    writeGgufAdapter(adapter, pairs, {
      "general.architecture": ["string", "llama"],
      "adapter.lora.alpha": ["f32", 4],
    });
    try {
      const options = { ...OPTIONS, adapters: [{ path: adapter, name: "a" }] };
      const both = [];
      for (const more of [{}, { memoryBytes: 3 * MIB }]) {
        using model = await load(path, { ...options, ...more });
        using session = model.createSession();
        await session.sync(PROMPT);
        const adapted = [...session.logits()];
        session.useAdapters({ a: 0.25 });
        await session.sync(PROMPT);
        both.push([adapted, [...session.logits()]]);
      }
      assertEquals(both[1], both[0]);
      assertNotEquals(both[0]![0], both[0]![1]);
    } finally {
      await Deno.remove(adapter);
    }
  }));

Deno.test("progress is told over all memories, and loading can be stopped between them", () =>
  withFile(async (path) => {
    const seen: number[] = [];
    const options: LoadOptions = { ...OPTIONS, memoryBytes: 3 * MIB };
    {
      using _model = await load(path, {
        ...options,
        onProgress: ({ phase, received, total }) =>
          void (phase === "load" && seen.push(received / total!)),
      });
      assertEquals(seen.at(-1), 1);
      assertEquals(seen, seen.toSorted((a, b) => a - b));
    }
    const controller = new AbortController();
    const { signal } = controller;
    const onProgress = ({ received, total }: ModelProgress) =>
      void (received > total! / 2 && controller.abort(new TypeError("that is enough")));
    await assertRejects(() => load(path, { ...options, signal, onProgress }), TypeError, "enough");
  }));

Deno.test("what no memory holds is refused with its size before anything is read", () =>
  withFile(async (path) => {
    // Keys and values of a layer are not cut: 40 sessions have more than a memory.
    const options = { ...OPTIONS, sessions: 40, memoryBytes: 4 * MIB };
    const text = "a part of it that cannot be cut needs";
    await assertRejects(() => load(path, options), ResourceError, text);
    const { info } = await inspectModel(path, options);
    assert(info.warnings.some((warning) => warning.includes(text)));
    await assertRejects(
      () => load(path, { memoryBytes: 5 }),
      RangeError,
      "Cannot use memoryBytes 5: it is an integer from 1048576 to 4294967296",
    );
  }));
