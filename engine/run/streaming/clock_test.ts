// The clock against the figures of LlamaF [LF-9] and the stored ones of a simulation with the same assumptions.

import { assert, assertAlmostEquals } from "@std/assert";
import { streamTimes, type TimedProduct } from "./clock.ts";

/** TinyLlama on LlamaF's card: 2.348 GMAC/s, 1.897 GB/s, 109 ms a token on the host. */
const DIM = 2048, HIDDEN = 5632, KV = 256, LAYERS = 22, VOCABULARY = 32_000;
const MACS = 2.348e9, RATE = 1.897e9, HOST = 0.109;

function tinyLlama({ rate = RATE } = {}): TimedProduct[] {
  const sizes: [string, number][] = [
    ["qkv", (DIM + 2 * KV) * DIM],
    ["o", DIM * DIM],
    ["w1w3", 2 * HIDDEN * DIM],
    ["w2", DIM * HIDDEN],
  ];
  const products = LAYERS * sizes.length + 1;
  const layer = sizes.map(([kind, macs]): TimedProduct => ({
    kind,
    load: (macs + 4 * macs / 256) / rate,
    compute: macs / MACS + HOST / products,
  }));
  const classifier = {
    kind: "classifier",
    load: 0,
    compute: VOCABULARY * DIM / MACS + HOST / products,
  };
  return [...Array.from({ length: LAYERS }, () => layer).flat(), classifier];
}

Deno.test("TinyLlama takes 1.068 s a token where nothing overlaps, and 0.550 s with one slot a kind", () => {
  assertAlmostEquals(streamTimes(tinyLlama(), 0).seconds, 1.0682796621510338, 1e-9);
  for (const depth of [1, 2] as const) {
    const { seconds, load, hidden } = streamTimes(tinyLlama(), depth);
    assertAlmostEquals(seconds, 0.5495537580919918, 1e-9);
    assertAlmostEquals(load, 0.5187259040590406, 1e-9);
    assertAlmostEquals(hidden, 1, 1e-9);
  }
});

Deno.test("a second slot hides more where loading and computing take about as long", () => {
  const products = tinyLlama({ rate: 0.95 * RATE });
  const [one, two] = ([1, 2] as const).map((depth) => streamTimes(products, depth));
  assert(two!.seconds <= one!.seconds);
  assert(two!.hidden > 0.9, `${two!.hidden}`);
  // No step is shorter than its loads.
  const slow = streamTimes(tinyLlama({ rate: RATE / 4 }), 2);
  assertAlmostEquals(slow.seconds, slow.load, 1e-6);
});
