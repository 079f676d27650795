// What streaming takes by a clock that nobody has to wait for, against the figures of LlamaF [LF-9] and the stored ones of a
// simulation with the same assumptions: loads in the order of use, one after the other, each into its slot as soon as the
// slot's last user is done; products in order, each when its weights are there. Time beside the products is spread evenly
// over them. Figures are those of a step in the steady state.

import { assert, assertAlmostEquals } from "@std/assert";

/** A product and its weights. */
interface TimedProduct {
  /** Weights of one kind share slots. */
  readonly kind: string;
  /** Seconds of loading; 0 for what stays in memory. */
  readonly load: number;
  /** Seconds of computing, with what else is computed before the next product. */
  readonly compute: number;
}

/** What a step takes. */
interface StreamTimes {
  /** Seconds a step. */
  readonly seconds: number;
  /** Seconds of loading in it. */
  readonly load: number;
  /** The part of loading during which something was computed. */
  readonly hidden: number;
}

/** Steps until nothing of the start is left, and those that are measured. */
const WARM = 20, MEASURED = 20;

/**
 * Runs the clock.
 *
 * @param depth Layers in memory at once; 0: a product's weights are loaded when it is its turn.
 */
function streamTimes(
  products: readonly TimedProduct[],
  depth: 0 | 1 | 2,
): StreamTimes {
  const slotFree = new Map<string, number[]>();
  let loader = 0, clock = 0, waited = 0, warm = 0;
  for (let step = 0; step < WARM + MEASURED; step++) {
    if (step === WARM) [warm, waited] = [clock, 0];
    for (const { kind, load, compute } of products) {
      if (load > 0) {
        const ends = slotFree.get(kind) ?? Array.from({ length: Math.max(1, depth) }, () => 0);
        slotFree.set(kind, ends);
        const free = depth === 0 ? clock : ends.shift()!;
        loader = Math.max(loader, free) + load;
        if (loader > clock) waited += loader - clock;
        clock = Math.max(clock, loader);
      }
      clock += compute;
      if (load > 0 && depth > 0) slotFree.get(kind)!.push(clock);
    }
  }
  const load = products.reduce((sum, { load }) => sum + load, 0);
  return {
    seconds: (clock - warm) / MEASURED,
    load,
    hidden: load === 0 ? 1 : Math.max(0, 1 - waited / MEASURED / load),
  };
}

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
