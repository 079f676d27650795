// Cuts of transformers' `_retrieve_segment`; 100 is the timestamp of 0.

import { assertEquals, assertThrows } from "@std/assert";
import { subtitles } from "./subtitles.ts";
import { cutWindow } from "./speech_windows.ts";

const cut = (ids: readonly number[], length = 50) =>
  cutWindow(ids, { firstTimestamp: 100, length });

Deno.test("without a pair of timestamps a window is one stretch, up to its last timestamp", () => {
  assertEquals(cut([1, 2]), { parts: [{ ids: [1, 2], start: 0, end: 50 }], taken: 50 });
  assertEquals(cut([100, 1, 120]).parts, [{ ids: [100, 1, 120], start: 0, end: 20 }]);
  assertEquals(cut([100, 1]).parts[0]!.end, 50);
  assertEquals(cut([]), { parts: [{ ids: [], start: 0, end: 50 }], taken: 50 });
});

Deno.test("what stands behind the last pair belongs to the next window", () => {
  assertEquals(cut([101, 1, 110, 112, 2, 120, 121, 3]), {
    parts: [
      { ids: [101, 1, 110], start: 1, end: 10 },
      { ids: [112, 2, 120, 121], start: 12, end: 20 },
    ],
    taken: 20,
  });
});

Deno.test("a timestamp alone at the end says that the rest is silence", () => {
  assertEquals(cut([101, 1, 110, 112, 2, 120]), {
    parts: [
      { ids: [101, 1, 110], start: 1, end: 10 },
      { ids: [112, 2, 120], start: 12, end: 20 },
    ],
    taken: 50,
  });
});

Deno.test("a window always goes on, also behind a pair of 0 seconds", () => {
  assertEquals(cut([1, 100, 100, 2]).taken, 50);
});

Deno.test("subtitles have times, no blank lines, and in WebVTT no markup", () => {
  const segments = [
    { start: 0, end: 1.2345, text: " One\n\ntwo." },
    { start: 2, end: 3, text: "  " },
    { start: 3599.9996, end: 3725.5, text: "<b> & c" },
  ];
  assertEquals(
    subtitles(segments, "srt"),
    "1\n00:00:00,000 --> 00:00:01,235\nOne\ntwo.\n\n2\n01:00:00,000 --> 01:02:05,500\n<b> & c\n",
  );
  assertEquals(
    subtitles(segments, "vtt"),
    "WEBVTT\n\n00:00:00.000 --> 00:00:01.235\nOne\ntwo.\n\n" +
      "01:00:00.000 --> 01:02:05.500\n&lt;b&gt; &amp; c\n",
  );
  assertEquals(subtitles([], "srt"), "");
  assertThrows(() => subtitles([], "ass" as "srt"), RangeError, '"ass": it is srt or vtt');
});
