// Numbers of transformers 5.24's WhisperFeatureExtractor in NumPy, and of scipy 1.17's resample_poly.

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { logMel } from "./log_mel.ts";
import { resample } from "./resample.ts";

/** Half a second of a rising tone and of bursts, and as much silence. */
function sound(): Float32Array {
  const samples = new Float32Array(16000), turn = 2 * Math.PI;
  for (let n = 0; n < 8000; n++) {
    const t = n / 16000;
    samples[n] = 0.3 * Math.sin(turn * (300 * t + 2000 * t * t)) +
      0.05 * Math.sin(turn * 5000 * t) * (n % 3200 < 1600 ? 1 : 0);
  }
  return samples;
}

const FEATURES: readonly (readonly [mels: number, mel: number, frame: number, value: number])[] = [
  [80, 0, 0, 0.9582874178886414],
  [80, 3, 1, 0.48024535179138184],
  [80, 10, 7, 0.3061898946762085],
  [80, 20, 20, -0.14086854457855225],
  [80, 40, 33, 0.8913350105285645],
  [80, 60, 49, -0.27262556552886963],
  [80, 79, 50, 0.12188100814819336],
  [80, 79, 99, -0.6999986171722412],
  [128, 0, 0, 0.8825281858444214],
  [128, 3, 1, 0.4028053879737854],
  [128, 10, 7, -0.3403054475784302],
  [128, 20, 20, -0.26575589179992676],
  [128, 60, 49, -0.023702263832092285],
  [128, 79, 50, 0.8008488416671753],
];

Deno.test("features are those of transformers within 1e-5", async () => {
  for (const mels of [80, 128]) {
    const found = await logMel(sound(), { mels, rate: 16000, frame: 400, hop: 160 });
    assertEquals([found.mels, found.frames], [mels, 100]);
    for (const [, mel, frame, value] of FEATURES.filter(([of]) => of === mels)) {
      const error = Math.abs(found.values[mel * 100 + frame]! - value);
      assert(error < 1e-5, `${mels} mels, ${mel} at ${frame}: off by ${error}`);
    }
  }
});

Deno.test("a sound shorter than a frame is mirrored, and one of some frames need not be even", async () => {
  const settings = { mels: 80, rate: 16000, frame: 400, hop: 160 };
  const one = await logMel(new Float32Array(160).fill(0.5), settings);
  assertEquals([one.frames, one.values.every(Number.isFinite)], [1, true]);
  const whole = await logMel(sound().subarray(0, 800), settings);
  const part = await logMel(sound().subarray(0, 1300), settings);
  assertEquals([whole.frames, part.frames], [5, 8]);
});

Deno.test("features are not made behind a signal", async () => {
  const signal = AbortSignal.abort(new Error("enough"));
  const settings = { mels: 80, rate: 16000, frame: 400, hop: 160, signal };
  await assertRejects(() => logMel(sound(), settings), Error, "enough");
});

Deno.test("rates change as scipy's resample_poly changes them", () => {
  const samples = Float32Array.from({ length: 12 }, (_, i) => (i + 1) / 16 * (i % 2 ? -1 : 1));
  const cases: readonly (readonly [from: number, to: number, length: number, first: number[]])[] = [
    [44100, 16000, 5, [0.0003461485612206161, 0.00559111637994647, -0.011197945103049278]],
    [8000, 16000, 24, [0.06253234297037125, -0.17394690215587616, -0.1250646859407425]],
    [48000, 16000, 4, [0.008964082226157188, -0.00816013477742672, 0.012019910849630833]],
    [22050, 48000, 27, [0.06254219263792038, -0.1600494235754013, -0.16208671033382416]],
  ];
  for (const [from, to, length, first] of cases) {
    const found = resample(samples, { from, to });
    assertEquals(found.length, length);
    first.forEach((value, i) => assert(Math.abs(found[i]! - value) < 1e-7, `${from} ${to} ${i}`));
  }
  assertEquals(resample(samples, { from: 16000, to: 16000 }), samples);
});

Deno.test("a rate that no sound has is refused", () => {
  for (const from of [0, 999, 44100.5, 2 ** 32 - 1, NaN]) {
    assertThrows(
      () => resample(new Float32Array(1), { from, to: 16000 }),
      RangeError,
      `${from} Hz`,
    );
  }
});
