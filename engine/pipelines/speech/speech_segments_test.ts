import { assertEquals, assertThrows } from "@std/assert";
import { speechSegments } from "./speech_segments.ts";

const audio = (chunks: number) => ({ rate: 16000, chunk: 512, length: chunks * 512 });
const runs = (...parts: readonly (readonly [number, number])[]) =>
  parts.flatMap(([count, probability]) => Array<number>(count).fill(probability));

Deno.test("a stretch of speech gets room on both sides, inside the sound", () => {
  const heard = runs([10, 0], [20, 0.9], [10, 0]);
  assertEquals(speechSegments(heard, audio(40)), [{ start: 10 * 512 - 480, end: 30 * 512 + 480 }]);
  assertEquals(speechSegments(runs([20, 0.9]), audio(20)), [{ start: 0, end: 20 * 512 }]);
});

Deno.test("speech goes on while it is above the lower threshold and through short silence", () => {
  const heard = runs([10, 0.9], [10, 0.4], [10, 0.9], [2, 0], [10, 0.9], [10, 0]);
  assertEquals(speechSegments(heard, audio(52)), [{ start: 0, end: 42 * 512 + 480 }]);
});

Deno.test("short stretches are dropped, also at the end", () => {
  assertEquals(speechSegments(runs([5, 0], [7, 0.9], [10, 0], [7, 0.9]), audio(29)), []);
});

Deno.test("a stretch of the least length is too short", () => {
  const lengths = (minSpeech: number) =>
    speechSegments(runs([5, 0], [8, 0.9], [10, 0]), audio(23), { minSpeech }).length;
  assertEquals([lengths(255), lengths(256)], [1, 0]); // 8 chunks are 256 ms
});

Deno.test("two stretches share a silence that is too short for both rooms", () => {
  const heard = runs([20, 0.9], [4, 0], [20, 0.9]);
  const options = { minSilence: 90, pad: 200 };
  const [first, second] = speechSegments(heard, audio(44), options);
  assertEquals([first!.end, second!.start], [22 * 512, 22 * 512]);
});

Deno.test("a threshold that is no probability is refused", () => {
  assertThrows(() => speechSegments([], audio(0), { threshold: 2 }), RangeError, "threshold is 2");
  assertThrows(() => speechSegments([], audio(0), { pad: -1 }), RangeError, "pad is -1");
});
