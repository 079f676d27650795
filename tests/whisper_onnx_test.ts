// Whisper in ONNX, in the files that Optimum writes (tools/fixtures/make_optimum_whisper.py): the same answers as
// transformers gives, whatever device computes, and errors that name the file that is not there.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { inspectModel, load, transcribe } from "../mod.ts";
import { UnsupportedError } from "../engine/errors.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import { openListener, speechModelOf } from "../engine/pipelines/speech/listener.ts";
import { logMel } from "../engine/pipelines/speech/log_mel.ts";
import { readWav } from "../engine/formats/media/wav.ts";
import { gunzip } from "../tools/fixtures/gunzip.ts";
import { fixturePath } from "./support/fixtures.ts";
import { adapterNeed } from "./support/gpu.ts";
import { testWith } from "./support/skip.ts";

const FOLDER = fixturePath("speech");
const MODEL = `${FOLDER}/whisper_toy`;
const MERGED = "decoder_model_merged.onnx", ENCODER = "encoder_model.onnx";
/** The same decoder, which gives out what its layers look at (tools/fixtures/make_cross_attentions.py). */
const WITH_LOOKS = "decoder_with_attentions.onnx";

/** A folder with graphs and the weights that they name. */
async function withFolder(
  graphs: readonly string[],
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = Deno.makeTempDirSync();
  try {
    for (const { name } of Deno.readDirSync(MODEL)) {
      Deno.copyFileSync(`${MODEL}/${name}`, `${folder}/${name}`);
    }
    for (const name of graphs) {
      Deno.writeFileSync(`${folder}/${name}`, await gunzip(`${FOLDER}/optimum/${name}.gz`));
    }
    await use(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

interface Expected {
  readonly modes: Readonly<
    Record<string, { language: string; task: "transcribe"; return_timestamps: boolean }>
  >;
  readonly cases: Readonly<
    Record<string, { readonly generate: Readonly<Record<string, { tokens: readonly number[] }>> }>
  >;
}

const expected: Expected = JSON.parse(
  new TextDecoder().decode(await gunzip(`${MODEL}/expected.json.gz`)),
);

for (const device of ["reference", "wasm", "gpu"] as const) {
  testWith(
    device === "gpu" ? [adapterNeed] : [],
    `${device}: Optimum's files give the tokens of transformers`,
    () =>
      withFolder([MERGED, ENCODER], async (folder) => {
        using model = await load(`${folder}/${MERGED}`, { device, threads: 1, precision: "exact" });
        const speech = speechModelOf(model as LoadedModel), { signal } = new AbortController();
        using listener = await openListener(speech, signal);
        const { samples } = readWav(await gunzip(`${FOLDER}/audio/bursts.wav.gz`));
        const window = new Float32Array(48000);
        window.set(samples);
        const { values } = await logMel(window, { mels: 80, rate: 16000, frame: 400, hop: 160 });
        await listener.hear(values, signal);
        for (const [mode, { tokens }] of Object.entries(expected.cases["bursts.wav"]!.generate)) {
          const { language, task, return_timestamps: hasTimestamps } = expected.modes[mode]!;
          const prompt = speech.vocabulary.ask({ language, task, hasTimestamps });
          const wish = { hasTimestamps, temperature: 0, maxTokens: 24, seed: undefined, signal };
          const { ids } = await listener.answer(prompt, wish);
          assertEquals([...prompt, ...ids], tokens, mode);
        }
      }),
  );
}

Deno.test("an ONNX model that is to time words is refused by name", () =>
  withFolder([MERGED, ENCODER], async (folder) => {
    await assertRejects(
      () => load(`${folder}/${MERGED}`, { device: "wasm", threads: 1, words: true }),
      UnsupportedError,
      "its files do not give out what the decoder sees of the sound",
    );
  }));

Deno.test("an ONNX model that gives out what it looks at times words as its checkpoint does", () =>
  withFolder([WITH_LOOKS, ENCODER], async (folder) => {
    const samples = readWav(await gunzip(`${FOLDER}/audio/bursts.wav.gz`), "bursts.wav");
    const options = { device: "wasm", threads: 1, precision: "exact", words: true } as const;
    const timed = async (path: string) => {
      using model = await load(path, options);
      const wish = { language: "en", words: true, temperatures: [0] } as const;
      const heard = await transcribe(model, samples, wish).result;
      return heard.segments.map(({ words }) => words);
    };
    const wanted = await timed(MODEL);
    assert(wanted.some((words) => words!.length > 0));
    assertEquals(await timed(`${folder}/${WITH_LOOKS}`), wanted);
  }));

Deno.test("two sessions of an ONNX model hear each their own sound", () =>
  withFolder([MERGED, ENCODER], async (folder) => {
    const options = { device: "wasm", threads: 1, precision: "exact", sessions: 2 } as const;
    using model = await load(`${folder}/${MERGED}`, options);
    const sounds = [3, 5].map((pitch) =>
      Float32Array.from({ length: 16000 }, (_, n) => Math.sin(n * n * pitch / 1e6))
    );
    const ids = async (all: readonly Float32Array[]) =>
      (await Promise.all(
        all.map((sound) =>
          transcribe(model, sound, { language: "en", temperatures: [0], maxTokens: 12 }).result
        ),
      )).map(({ ids }) => ids);
    const [[first], [second]] = [await ids([sounds[0]!]), await ids([sounds[1]!])];
    assertEquals(await ids(sounds), [first!, second!]);
    const { info } = await inspectModel(`${folder}/${MERGED}`);
    assertEquals([info.network, info.layers, info.heads, info.contextLength], [
      ...["encoder-decoder", 2, 4, 64],
    ]);
  }));

Deno.test("an encoder without a decoder, and a decoder without an encoder, are refused by name", async () => {
  await withFolder([MERGED], async (folder) => {
    await assertRejects(
      () => load(`${folder}/${MERGED}`, { device: "wasm" }),
      UnsupportedError,
      "encoder_model.onnx is not beside it",
    );
  });
  await withFolder([ENCODER], async (folder) => {
    await assertRejects(
      () => load(`${folder}/${ENCODER}`, { device: "wasm" }),
      UnsupportedError,
      "input_features",
    );
  });
});
