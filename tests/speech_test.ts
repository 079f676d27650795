// Silero VAD as its package runs it: probabilities of every chunk, and the stretches of speech.

import { assertAlmostEquals, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { detectSpeech } from "../engine/pipelines/speech/detect_speech.ts";
import { createSpeechDetector } from "../engine/pipelines/speech/speech_detector.ts";
import { loadGraph } from "../engine/onnx/running/load_graph.ts";
import { fixturePath } from "./support/fixtures.ts";
import { modelNeed, modelPath } from "./support/models.ts";
import { testWith } from "./support/skip.ts";
import { vadSignal } from "./support/vad_signal.ts";

interface Golden {
  readonly signal: { readonly first8: readonly number[]; readonly sum_of_squares: number };
  readonly models: Readonly<Record<string, { readonly probability: readonly number[] }>>;
  readonly segments: {
    readonly cases: readonly {
      readonly options: Readonly<Record<string, number>>;
      readonly segments: readonly (readonly number[])[];
    }[];
  };
}

const golden: Golden = JSON.parse(
  Deno.readTextFileSync(fixturePath("golden/silero-vad.json")),
);

Deno.test("the signal for speech detection is the one that the golden file describes", () => {
  const signal = vadSignal();
  golden.signal.first8.forEach((value, i) => assertAlmostEquals(signal[i]!, value, 1e-8));
  const squares = signal.reduce((sum, value) => sum + value * value, 0);
  assertAlmostEquals(squares, golden.signal.sum_of_squares, 1e-3);
});

testWith([modelNeed("silero-vad")], "speech is found where Silero's package finds it", async () => {
  const signal = vadSignal();
  const expected = golden.models["silero_vad.onnx"]!.probability;
  using graph = await loadGraph(modelPath("silero-vad")!, { device: "wasm", threads: 1 });
  for (const { options, segments } of golden.segments.cases) {
    const found = await detectSpeech(graph, signal, options);
    // The last chunk, which is not full, is missing in the golden file.
    assertEquals(found.probabilities.length, expected.length + 1);
    expected.forEach((value, i) => assertAlmostEquals(found.probabilities[i]!, value, 1e-4));
    assertEquals(found.segments.map(({ start, end }) => [start, end]), segments);
  }
  const detector = createSpeechDetector(graph, 16000);
  await assertRejects(() => detector.next(new Float32Array(513)), RangeError, "513 samples");
  const first = await detector.next(signal.subarray(0, 512));
  await detector.next(signal.subarray(512, 1024));
  detector.reset();
  assertEquals(await detector.next(signal.subarray(0, 512)), first);
  assertThrows(() => createSpeechDetector(graph, 44100 as 16000), RangeError, "44100 Hz");
});
