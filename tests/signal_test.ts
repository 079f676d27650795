// Signals at every public call that takes one: one that has fired stops it before anything is done, one that fires while
// it computes stops it soon, also within a single run of a network, and what was called goes on as if nothing had been.
// Clocks stand still or run as the test says (support/clock.ts): every look at one takes 30 ms, so that a run is cut
// wherever it can be.

import { assert, assertEquals, assertGreater } from "@std/assert";
import {
  beamSearch,
  chat,
  classifyImage,
  contrastiveSearch,
  detectSpeech,
  embed,
  embedImage,
  generate,
  type GeneratedImage,
  generateImage,
  type ImageModel,
  inspectModel,
  load,
  type LoadedGraph,
  loadGraph,
  loadImageModel,
  type LoadOptions,
  loadTokenizer,
  matchImages,
  perplexity,
  pullModel,
  quantError,
  quantize,
  readPicture,
  sentenceVectors,
  transcribe,
} from "../mod.ts";
import { withClock } from "./support/clock.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { gpuTest } from "./support/gpu.ts";
import { loadTiny, TINY_LLAMA } from "./support/models.ts";
import { unpackedVisionLanguage } from "./support/vision_language.ts";
import { floats, writeOnnx } from "./support/write_onnx.ts";

const ON_WASM = { device: "wasm", threads: 1 } as const;

/** What takes a signal. */
interface Call {
  readonly name: string;
  readonly run: (options: { readonly signal?: AbortSignal }) => Promise<unknown>;
  /** It does not reject: its result says so. */
  readonly says?: boolean;
  /** What it does is not computing, or one short step. */
  readonly isShort?: boolean;
}

const SIDE = 8;
const SEERS = unpackedVisionLanguage();

/** Products one behind the other. */
function chainOf(count: number): Uint8Array {
  const w = floats(...Array.from({ length: SIDE * SIDE }, (_, i) => Math.sin(i)));
  const names = Array.from({ length: count + 1 }, (_, i) => `x${i}`);
  return writeOnnx({
    inputs: [["x0", 1, [SIDE, SIDE]]],
    outputs: [[names.at(-1)!, 1, [SIDE, SIDE]]],
    initializers: [{ name: "w", type: 1, dims: [SIDE, SIDE], raw: w }],
    nodes: names.slice(1).map((name, i) => ({
      ...{ op: "MatMul", inputs: [names[i]!, "w"], outputs: [name] },
    })),
  });
}

/** Rows of a table, by ids. */
function rowsOf(): Uint8Array {
  return writeOnnx({
    inputs: [["input_ids", 7, ["N", "L"]]],
    outputs: [["rows", 1, ["N", "L", 2]]],
    initializers: [{ name: "w", type: 1, dims: [4, 2], raw: floats(1, 2, 3, 4, 5, 6, 7, 8) }],
    nodes: [{ op: "Gather", inputs: ["w", "input_ids"], outputs: ["rows"] }],
  });
}

/** Hears speech at any time. */
const LOUD = {
  inputs: [{ name: "input" }, { name: "state" }, { name: "sr" }],
  outputs: [{ name: "output" }, { name: "stateN" }],
  run: () =>
    Promise.resolve({
      output: { data: Float32Array.of(1) },
      stateN: { data: new Float32Array(256), dims: [2, 1, 128] },
    }),
} as unknown as LoadedGraph;

/** All calls that take a signal, with what they need open. */
async function withCalls(action: (calls: readonly Call[], folder: string) => Promise<void>) {
  await withFolder(async (folder) => {
    using all = new DisposableStack();
    Deno.writeFileSync(`${folder}/chain.onnx`, chainOf(12));
    Deno.writeFileSync(`${folder}/rows.onnx`, rowsOf());
    const open = async (path: string, options: LoadOptions = {}) =>
      all.use(
        await load(fixturePath(path), { ...ON_WASM, precision: "exact", ...options }),
      );
    const llama = await open("models/llama_formats/llama.Q8_0.gguf", {
      ...{ contextLength: 64, sessions: 6, embeddings: true, logitRows: 4 },
    });
    const bert = await open("models/bert"), vit = await open("pictures/vit_toy");
    const clip = await open("pictures/clip_toy");
    const whisper = await open("speech/whisper_toy", { sessions: 2 });
    const translator = await open("models/m2m100", { sessions: 4 });
    const painters = await Promise.all(
      (["wasm", "reference"] as const).map(async (device) =>
        all.use(await loadImageModel(fixturePath("pictures/sd_toy"), { device, threads: 1 }))
      ),
    );
    const [graph, slowGraph, rows] = await Promise.all(
      ([["chain", "wasm"], ["chain", "reference"], ["rows", "wasm"]] as const).map(
        async ([name, device]) =>
          all.use(await loadGraph(`${folder}/${name}.onnx`, { device, threads: 1 })),
      ),
    );
    const session = all.use(llama.createSession()), heard = all.use(whisper.createSession());
    const png = await Deno.readFile(fixturePath("pictures/inputs/gradient.png"));
    const picture = await readPicture(png);
    const sound = Float32Array.from({ length: 16000 }, (_, i) => Math.sin(i / 20));
    const short = { maxTokens: 3, temperature: 0, seed: 1, ignoreEos: true } as const;
    const x0 = { data: new Float32Array(SIDE * SIDE).fill(0.5), dims: [SIDE, SIDE] };
    const init = { width: 16, height: 16, data: new Uint8Array(768).map((_, i) => i % 251) };
    const small = { width: 16, height: 16, steps: 1, seed: 1 };
    const [painter, slowPainter] = painters as [ImageModel, ImageModel];
    const quantized = `${folder}/small.gguf`;
    await action([
      { name: "generateImage", run: (o) => generateImage(painter, "a cat", { ...small, ...o }) },
      {
        name: "generateImage of a picture",
        run: (o) => generateImage(painter, "a cat", { ...small, init, strength: 1, ...o }),
      },
      {
        name: "generateImage on the reference",
        run: (o) => generateImage(slowPainter, "a cat", { ...small, ...o }),
      },
      { name: "run", run: (o) => graph!.run({ x0 }, o) },
      { name: "run on the reference", run: (o) => slowGraph!.run({ x0 }, o) },
      { name: "sentenceVectors", isShort: true, run: (o) => sentenceVectors(rows!, [[1, 2]], o) },
      { name: "embed", run: (o) => embed(bert, [[1, 2, 3]], o) },
      { name: "embedImage", run: (o) => embedImage(clip, picture, o) },
      {
        name: "matchImages",
        run: (o) => matchImages(clip, { images: picture, texts: ["a", "b"] }, o),
      },
      { name: "classifyImage", run: (o) => classifyImage(vit, picture, o) },
      {
        name: "generate",
        says: true,
        isShort: true,
        run: (o) => generate(llama, "abcab", { ...short, ...o }).result,
      },
      {
        name: "chat, with a picture",
        says: true,
        async run(o) {
          // What it has looked at is known to a model.
          using seer = await load(`${SEERS}/qwen25_vl_toy`, ON_WASM);
          const content = [{ type: "image", image: picture }, { type: "text", text: "?" }];
          return await chat(seer, [{ role: "user", content }], { ...short, ...o }).result;
        },
      },
      { name: "sync", isShort: true, run: (o) => session.sync([1, 5, 6], o) },
      { name: "eval", isShort: true, run: (o) => (session.rewind(0), session.eval([1, 5, 6], o)) },
      { name: "encode", run: (o) => heard.encode(new Float32Array(80 * 300), o) },
      {
        name: "transcribe",
        says: true,
        run: (o) =>
          transcribe(whisper, sound, {
            language: "en",
            maxTokens: 4,
            temperatures: [0],
            seed: 1,
            ...o,
          })
            .result,
      },
      { name: "detectSpeech", run: (o) => detectSpeech(LOUD, sound, o) },
      {
        name: "beamSearch",
        run: (o) =>
          beamSearch(translator, [13, 45, 2], { beams: 2, maxTokens: 3, endIds: [2], ...o }),
      },
      {
        name: "contrastiveSearch",
        isShort: true,
        run: (o) => contrastiveSearch(llama, "abc", { maxTokens: 3, ...o }),
      },
      {
        name: "perplexity",
        isShort: true,
        run: (o) => perplexity(llama, [5, 6, 7, 8], { window: 3, bos: [], ...o }),
      },
      {
        name: "load",
        isShort: true,
        run: async (o) => (await load(TINY_LLAMA, { ...ON_WASM, ...o })).dispose(),
      },
      { name: "inspectModel", isShort: true, run: (o) => inspectModel(TINY_LLAMA, o) },
      { name: "loadTokenizer", isShort: true, run: (o) => loadTokenizer(TINY_LLAMA, o) },
      { name: "pullModel", isShort: true, run: (o) => pullModel(TINY_LLAMA, o) },
      {
        name: "quantError",
        isShort: true,
        run: (o) => quantError(TINY_LLAMA, { format: "Q4_0", threads: 1, ...o }),
      },
      {
        name: "quantize",
        isShort: true,
        run: (o) => quantize(TINY_LLAMA, quantized, { format: "Q8_0", threads: 1, ...o }),
      },
    ], folder);
  });
}

/** Who is told by a result. */
const isAborted = (result: unknown) =>
  (result as { readonly finishReason?: string }).finishReason === "abort";

/** What a call gives, without how long it took. */
function plain(result: unknown): unknown {
  if (typeof result !== "object" || result === null || !("stats" in result)) return result;
  const { stats: _, ...rest } = result;
  return rest;
}

async function assertStopped({ run, says, name }: Call, signal: AbortSignal): Promise<void> {
  const result = await run({ signal }).catch((error) => error);
  assert(says ? isAborted(result) : result === signal.reason, `${name}: ${result}`);
}

Deno.test("a signal that has fired stops every call before it does anything", () =>
  withCalls(async (calls) => {
    const reason = new Error("left"), signal = AbortSignal.abort(reason);
    for (const call of calls) {
      await withClock(async (clock) => {
        await assertStopped(call, signal);
        assertEquals(clock.turns, 0, `${call.name} began`);
      });
    }
  }));

Deno.test("a signal that fires within a step stops it soon, and the next call is as any other", () =>
  withCalls(async (calls) => {
    for (const call of calls.filter(({ isShort }) => !isShort)) {
      const { name, run, says } = call;
      await withClock(async (clock) => {
        clock.step = 30;
        const turns = async (action: () => Promise<unknown>) => {
          const before = clock.turns;
          await action();
          return clock.turns - before;
        };
        let expected: unknown;
        await run({}); // what is loaded at the first use is there
        const { signal } = new AbortController();
        const all = await turns(async () => expected = plain(await run({ signal })));
        assertGreater(all, 5, `${name} is not cut`);
        for (const at of [1, 2, Math.floor(all / 2), all - 1]) {
          const stop = new AbortController(), reason = new Error("enough");
          let seen = 0;
          clock.onTurn = () => ++seen === at && stop.abort(reason);
          const result = await run({ signal: stop.signal }).then(plain, (error) => error);
          clock.onTurn = () => {};
          assert(says ? isAborted(result) : result === reason, `${name}, turn ${at} of ${all}`);
          assert(seen <= at + 3, `${name} went on for ${seen - at} turns of ${all}`);
          assertEquals(plain(await run({})), expected, `${name} behind turn ${at}`);
        }
      });
    }
  }));

gpuTest(
  "a GPU hears a signal between the submissions of a run",
  () =>
    withFolder(async (folder) => {
      Deno.writeFileSync(`${folder}/chain.onnx`, chainOf(12));
      const low = { priority: "low", maxSubmitMs: 1e-6 } as const;
      using graph = await loadGraph(`${folder}/chain.onnx`, { device: "gpu", ...low });
      const x0 = { data: new Float32Array(SIDE * SIDE).fill(0.5), dims: [SIDE, SIDE] };
      const expected = await graph.run({ x0 });
      await withClock(async (clock) => {
        clock.step = 1;
        const stop = new AbortController(), reason = new Error("enough");
        clock.onTurn = () => clock.turns === 3 && stop.abort(reason);
        const error = await graph.run({ x0 }, { signal: stop.signal }).catch((error) => error);
        assertEquals([error, clock.turns], [reason, 3]);
      });
      assertEquals(await graph.run({ x0 }), expected);
    }),
);

Deno.test("calls leave nothing at a signal that outlives them", () =>
  withCalls(async (calls) => {
    const { addEventListener, removeEventListener } = AbortSignal.prototype;
    let listeners = 0, added = 0;
    AbortSignal.prototype.addEventListener = function (
      ...given: Parameters<typeof addEventListener>
    ) {
      listeners++;
      added++;
      return addEventListener.apply(this, given);
    };
    AbortSignal.prototype.removeEventListener = function (
      ...given: Parameters<typeof removeEventListener>
    ) {
      listeners--;
      return removeEventListener.apply(this, given);
    };
    try {
      const { signal } = new AbortController();
      for (const { name, run } of calls) {
        // Two at once, so that one waits for the other.
        await Promise.allSettled([run({ signal }), run({ signal })]);
        assertEquals(listeners, 0, name);
      }
      assertGreater(added, 0);
    } finally {
      Object.assign(AbortSignal.prototype, { addEventListener, removeEventListener });
    }
  }));

Deno.test("pictures that are painted at once are as when painted one by one", async () => {
  using model = await loadImageModel(fixturePath("pictures/sd_toy"), ON_WASM);
  const { signal } = new AbortController();
  const paint = (seed: number, width: number) =>
    generateImage(model, "a cat", { width, height: 16, steps: 2, seed, signal });
  const sizes = [[1, 16], [2, 32], [3, 16]] as const;
  const expected: GeneratedImage[] = [];
  for (const [seed, width] of sizes) expected.push(await paint(seed, width));
  await withClock(async (clock) => {
    clock.step = 30;
    assertEquals(await Promise.all(sizes.map(([seed, width]) => paint(seed, width))), expected);
  });
});

Deno.test("an answer gives its place back whenever it is stopped while it takes it", async () => {
  using model = await loadTiny({ device: "wasm", threads: 1, sessions: 1 });
  for (let promises = 0; promises < 12; promises++) {
    const controller = new AbortController();
    const { result } = generate(model, [3, 4], { maxTokens: 2, signal: controller.signal });
    for (let i = 0; i < promises; i++) await undefined;
    controller.abort();
    assertEquals((await result).finishReason, "abort");
    assertEquals(model.activity.running, 0, `stopped after ${promises} promises`);
  }
  using _own = model.createSession();
});
