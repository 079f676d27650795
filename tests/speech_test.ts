// Speech beside transformers, stage by stage: the cases of `deno task fixtures`, in a small copy, on every device. And
// what transcribe() promises besides: segments as they come, windows side by side, an end at any time, named errors.

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { generate, load, type LoadedGraph, transcribe, type Transcript } from "../mod.ts";
import { FormatError, ResourceError, UnsupportedError } from "../engine/errors.ts";
import { speech } from "../tools/fixtures/speech.ts";
import { gunzip } from "../tools/fixtures/gunzip.ts";
import { troodon } from "./support/cli.ts";
import { withClock } from "./support/clock.ts";
import { fixturePath } from "./support/fixtures.ts";
import { adapterNeed } from "./support/gpu.ts";
import { testWith } from "./support/skip.ts";

const FOLDER = fixturePath("speech");
const MODEL = `${FOLDER}/whisper_toy`;
const EXACT = { device: "wasm", threads: 1, precision: "exact" } as const;
/** Random weights are always unlikely. */
const FIRST = { language: "en", temperatures: [0], maxNoSpeech: 1, maxTokens: 24 } as const;

for (const device of ["reference", "wasm", "gpu"] as const) {
  const context = { device, full: false };
  for await (const { name, run } of speech.cases(FOLDER, context)) {
    const [isComputed, isLong] = [!/mel/.test(name), /long sound/.test(name)];
    // Hundreds of steps take the reference, and a GPU in software, a minute.
    if (device === "wasm" ? !isComputed : isLong || device === "gpu" && !isComputed) continue;
    const needs = device === "gpu" ? [adapterNeed] : [];
    testWith(needs, `${device}: ${name} is as outside implementations have it`, () => run!());
  }
}

/** Tones that change, with a second of silence in the middle. */
function sound(seconds = 7): Float32Array {
  return Float32Array.from({ length: seconds * 16000 }, (_, n) => {
    const t = n / 16000;
    return t > 3 && t < 4 ? 0 : 0.3 * Math.sin(2 * Math.PI * (200 * t + 40 * t * t));
  });
}

/** A detector that hears speech where it is loud. */
const LOUD = {
  inputs: [{ name: "input" }, { name: "state" }, { name: "sr" }],
  outputs: [{ name: "output" }, { name: "stateN" }],
  run({ input }: { readonly input: { readonly data: Float32Array } }) {
    const loud = input.data.some((sample) => Math.abs(sample) > 0.1);
    const state = { data: new Float32Array(256), dims: [2, 1, 128] };
    return Promise.resolve({ output: { data: Float32Array.of(Number(loud)) }, stateN: state });
  },
} as unknown as LoadedGraph;

const idsOf = ({ segments }: Transcript) =>
  segments.map(({ start, end, tokens }) => [start, end, tokens.map(({ id }) => id).join()]);

Deno.test("segments come a window at a time, in order, with what is known of the whole at the end", async () => {
  using model = await load(MODEL, EXACT);
  const told: number[] = [];
  const transcription = transcribe(model, sound(), {
    ...FIRST,
    onProgress: ({ seconds, duration }) => told.push(seconds / duration),
  });
  let text = "", last = 0, seen = 0;
  for await (const segment of transcription) {
    if (seen++ === 0) assert(told.length <= 1, "the first segment came behind the second window");
    assert(segment.start >= last && segment.end >= segment.start);
    last = segment.start;
    text += segment.text;
  }
  const result = await transcription.result;
  assertEquals([result.text, result.segments.length, result.language], [text, seen, "en"]);
  assertEquals([result.duration, result.finishReason, told.at(-1)], [7, "eos", 1]);
  assertEquals(told, told.toSorted((a, b) => a - b));
  assert(result.stats.decodeTokens > 0 && result.stats.decodeTokens <= 24 * told.length);
});

Deno.test("stretches of speech are computed side by side as if each were alone", async () => {
  using one = await load(MODEL, EXACT);
  using several = await load(MODEL, { ...EXACT, sessions: 3 });
  const options = { ...FIRST, vad: LOUD, vadOptions: { minSilence: 300 } };
  const alone = await transcribe(one, sound(9), options).result;
  // Who computes for long lets others go on, so that on a slow clock one may have ended before the next begins.
  const together = await withClock(() => transcribe(several, sound(9), options).result);
  assertEquals(idsOf(together), idsOf(alone));
  assert(several.activity.steps < one.activity.steps, "no step had rows of two stretches");
  // A window begins with speech, not behind the one before it.
  assert(alone.segments.some(({ start }) => start >= 3.9 && start < 4.97));
  const { segments } = await transcribe(one, sound(9), FIRST).result;
  assert(JSON.stringify(segments) !== JSON.stringify(alone.segments));
  assertEquals((await transcribe(one, new Float32Array(32000), options).result).segments, []);
});

Deno.test("a long window is given what was said before, and a text of the caller", async () => {
  using model = await load(MODEL, EXACT);
  const plain = idsOf(await transcribe(model, sound(), FIRST).result);
  const conditioned = await transcribe(model, sound(), { ...FIRST, conditionOnPrevious: true })
    .result;
  assertEquals(idsOf(conditioned)[0], plain[0]);
  assert(JSON.stringify(idsOf(conditioned)) !== JSON.stringify(plain));
  const prompted = await transcribe(model, sound(), { ...FIRST, prompt: "6(6(" }).result;
  assert(JSON.stringify(idsOf(prompted)) !== JSON.stringify(plain));
});

Deno.test("an unlikely answer is drawn again, the same with the same seed", async () => {
  using model = await load(MODEL, EXACT);
  const options = { ...FIRST, temperatures: [0, 0.7], seed: 5 };
  const first = await transcribe(model, sound(2), options).result;
  assertEquals(first.segments[0]!.temperature, 0.7);
  assertEquals(idsOf(await transcribe(model, sound(2), options).result), idsOf(first));
  const good = { ...options, minLogProbability: -Infinity, maxCompression: Infinity };
  assertEquals((await transcribe(model, sound(2), good).result).segments[0]!.temperature, 0);
});

Deno.test("a window that is unlikely and silent is left out", async () => {
  using model = await load(MODEL, EXACT);
  const { segments } = await transcribe(model, sound(2), { ...FIRST, maxNoSpeech: 0 }).result;
  assertEquals(segments, []);
});

Deno.test("a transcription ends at a signal, and when its reader leaves", async () => {
  using model = await load(MODEL, EXACT);
  const controller = new AbortController();
  const { signal } = controller;
  const aborted = transcribe(model, sound(30), {
    ...{ ...FIRST, signal },
    onProgress: () => controller.abort(),
  });
  const { finishReason, segments } = await aborted.result;
  assertEquals([finishReason, segments.length > 0 && segments.at(-1)!.end < 10], ["abort", true]);
  for await (const _ of transcribe(model, sound(30), FIRST)) break;
  const { steps } = model.activity;
  assertEquals((await transcribe(model, sound(2), FIRST).result).finishReason, "eos");
  assert(steps < model.activity.steps, "the session was not given back");
});

Deno.test("what cannot be transcribed is refused at once, by name", async () => {
  using model = await load(MODEL, EXACT);
  using text = await load(fixturePath("models/qwen3"), EXACT);
  const wrong = (samples: Parameters<typeof transcribe>[1], options = {}) => () =>
    transcribe(model, samples, options);
  assertThrows(() => transcribe(text, sound()), UnsupportedError, "does not listen");
  assertThrows(wrong(new Float32Array(0)), RangeError, "without samples");
  assertThrows(wrong(Float32Array.of(0, NaN)), RangeError, "sample 1 is NaN");
  assertThrows(wrong([0, 1] as unknown as Float32Array), TypeError, "Float32Array");
  assertThrows(wrong(undefined as never), TypeError, "Float32Array");
  assertThrows(wrong({ samples: sound(), rate: 0 }), RangeError, "resample 0 Hz");
  assertThrows(wrong(sound(), { maxSeconds: 5 }), ResourceError, "7 s, and 5 are the most");
  assertThrows(wrong(sound(), { language: "klingon" }), UnsupportedError, "de, en, fr, zh");
  assertThrows(wrong(sound(), { timestamps: false }), RangeError, "7.0 s, and a window 3.0 s");
  assertThrows(wrong(sound(), { words: true }), TypeError, "load the model with words: true");
  assertThrows(wrong(sound(), { task: "sing" }), RangeError, "sing");
  assertThrows(wrong(sound(), { temperatures: [] }), RangeError, "temperatures");
  assertThrows(wrong(sound(), { beams: 2 }), RangeError, '"beams"');
  assertThrows(() => generate(model, "hello"), UnsupportedError, "transcribe()");
  const detected = transcribe(model, sound(), { vad: text as never });
  await assertRejects(() => detected.result, TypeError, "give a graph from loadGraph()");
  using session = model.createSession();
  await assertRejects(() => session.encode([1, 2]), RangeError, "80 · 300");
  await assertRejects(() => session.save(), UnsupportedError, "not saved");
});

Deno.test("languages have codes and English names", async () => {
  using model = await load(MODEL, EXACT);
  const tokens = async (language: string) =>
    idsOf(await transcribe(model, sound(2), { ...FIRST, language }).result);
  assertEquals(await tokens("German"), await tokens("de"));
});

/** Uses a copy of the model with files that are other, or not there. */
async function withCopy(
  changes: Readonly<Record<string, unknown>>,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = Deno.makeTempDirSync();
  try {
    for (const { name } of Deno.readDirSync(MODEL)) {
      if (name in changes) continue;
      Deno.copyFileSync(`${MODEL}/${name}`, `${folder}/${name}`);
    }
    for (const [name, content] of Object.entries(changes)) {
      if (content) Deno.writeTextFileSync(`${folder}/${name}`, JSON.stringify(content));
    }
    await use(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

async function loadWith(changes: Readonly<Record<string, unknown>>): Promise<void> {
  await withCopy(changes, async (folder) => {
    using _model = await load(folder, { ...EXACT, words: true });
  });
}

Deno.test("files that do not fit the model are refused", async () => {
  const name = "preprocessor_config.json";
  const extractor = JSON.parse(Deno.readTextFileSync(`${MODEL}/${name}`));
  const generation = JSON.parse(Deno.readTextFileSync(`${MODEL}/generation_config.json`));
  const with_ = (change: object) => loadWith({ [name]: { ...extractor, ...change } });
  await assertRejects(() => loadWith({ [name]: null }), FormatError, name);
  const heads = (alignment_heads: unknown) =>
    loadWith({ "generation_config.json": { ...generation, alignment_heads } });
  await assertRejects(() => heads([[2, 0]]), FormatError, "layer below 2 and a head below 4");
  await assertRejects(() => heads([]), FormatError, "alignment_heads");
  await assertRejects(() => heads("all"), FormatError, "alignment_heads");
  const text = fixturePath("models/qwen3");
  await assertRejects(() => load(text, { ...EXACT, words: true }), UnsupportedError, "no words");
  await assertRejects(() => with_({ feature_size: 128 }), FormatError, "takes 80 mel bands");
  await assertRejects(() => with_({ hop_length: 0 }), FormatError, "hop_length");
  await assertRejects(() => with_({ dither: 1 }), UnsupportedError, "dither");
  await assertRejects(
    () => with_({ feature_extractor_type: "SpeechT5FeatureExtractor" }),
    UnsupportedError,
    "SpeechT5FeatureExtractor",
  );
});

Deno.test("a tokenizer.json without timestamps is that of a model with them", async () => {
  const name = "tokenizer.json", json = JSON.parse(Deno.readTextFileSync(`${MODEL}/${name}`));
  const isTime = ({ content }: { content: string }) => /^<\|\d+\.\d\d\|>$/.test(content);
  const added_tokens = json.added_tokens.filter((token: { content: string }) => !isTime(token));
  assert(added_tokens.length < json.added_tokens.length);
  await withCopy({ [name]: { ...json, added_tokens } }, async (folder) => {
    using model = await load(folder, EXACT);
    using whole = await load(MODEL, EXACT);
    const tokens = async (one: typeof model) =>
      idsOf(await transcribe(one, sound(2), FIRST).result);
    assertEquals(await tokens(model), await tokens(whole));
  });
});

Deno.test("troodon transcribe prints text, times, subtitles and JSON", async () => {
  const file = Deno.makeTempFileSync({ suffix: ".wav" });
  try {
    Deno.writeFileSync(file, await gunzip(`${FOLDER}/audio/bursts.wav.gz`));
    const flags = ["--model", MODEL, "--temperature", "0", "--precision", "exact", "-l", "en"];
    const run = async (...more: string[]) => {
      const { code, out, err } = await troodon(["transcribe", file, ...flags, ...more]);
      assertEquals([code, err], [0, ""]);
      return out;
    };
    const { text, segments, language, duration } = JSON.parse(await run("--json"));
    assertEquals([language, duration, await run()], ["en", 2, `${text}\n`]);
    const stdin = Deno.readFileSync(file);
    const piped = await troodon(["transcribe", "-", ...flags], { stdin });
    assertEquals([piped.code, piped.out], [0, `${text}\n`]);
    const [first] = segments;
    assertEquals(first.ids.length > 0 && first.temperature, 0);
    assert((await run("--timestamps")).startsWith(`[00:0${first.start.toFixed(3)} --> 00:0`));
    assert((await run("--vtt")).startsWith("WEBVTT\n\n00:00:0"));
    assert((await run("--srt")).startsWith("1\n00:00:0"));
    const timed = JSON.parse(await run("--json", "--words")).segments;
    const words: { text: string; start: number }[] = timed.flatMap((one: typeof first) =>
      one.words
    );
    const shown = words.filter(({ text }) => text.trim() !== "").length;
    assertEquals([first.words, (await run("--words")).split("\n").length], [
      ...[undefined, words.length + 1],
    ]);
    assertEquals((await run("--words", "--srt")).split(" --> ").length, shown + 1);
    assert((await run("--words")).startsWith(`[00:0${words[0]!.start.toFixed(3)} --> 00:0`));
    const { code, err } = await troodon(["transcribe", file, ...flags, "--srt", "--json"]);
    assertEquals([code, err.includes("--srt, --json")], [2, true]);
    const terminated = await troodon(["transcribe", file, ...flags], { endedBy: 143 });
    assertEquals([terminated.code, terminated.err], [143, ""]);
  } finally {
    Deno.removeSync(file);
  }
});
