// What streaming by a plan's slots takes by a clock that nobody has to wait for, against the figures of LlamaF [LF-9] and the stored ones of a
// simulation with the same assumptions: loads in the order of use, one after the other, each into its slot as soon as the
// slot's last user is done; products in order, each when its weights are there. Time beside the products is spread evenly
// over them. Figures are those of a step in the steady state.

import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { IN_FILE, LLAMAF_TINY, planLlama } from "../../../tests/support/planned_llama.ts";
import { elementCount } from "../../ops/host_tensor.ts";
import { planStream } from "./slots.ts";

/** A product and its weights. */
interface TimedProduct {
  /** Weights of one kind share slots. */
  readonly kind: string;
  /** So many; 0: weights are loaded when it is its turn. */
  readonly slots: number;
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

/** Runs the clock. */
function streamTimes(products: readonly TimedProduct[]): StreamTimes {
  const slotFree = new Map<string, number[]>();
  let loader = 0, clock = 0, waited = 0, warm = 0;
  for (let step = 0; step < WARM + MEASURED; step++) {
    if (step === WARM) [warm, waited] = [clock, 0];
    for (const { kind, slots, load, compute } of products) {
      if (load > 0) {
        const ends = slotFree.get(kind) ?? Array.from({ length: slots }, () => 0);
        slotFree.set(kind, ends);
        const free = slots === 0 ? clock : ends.shift()!;
        loader = Math.max(loader, free) + load;
        if (loader > clock) waited += loader - clock;
        clock = Math.max(clock, loader);
      }
      clock += compute;
      if (load > 0 && slots > 0) slotFree.get(kind)!.push(clock);
    }
  }
  const load = products.reduce((sum, { load }) => sum + load, 0);
  return {
    seconds: (clock - warm) / MEASURED,
    load,
    hidden: load === 0 ? 1 : Math.max(0, 1 - waited / MEASURED / load),
  };
}

/** LlamaF's card: 2.348 GMAC/s, 1.897 GB/s, 109 ms a token on the host. */
const MACS = 2.348e9, RATE = 1.897e9, HOST = 0.109;

const PLAN = await planLlama(LLAMAF_TINY);

/** Products of TinyLlama in their order, whose weights come and go as is planned. */
function tinyLlama(depth: 0 | 1 | 2, rate = RATE): TimedProduct[] {
  const { kinds } = planStream(PLAN, { ...IN_FILE, depth: depth === 2 ? 2 : 1 });
  const weights = PLAN.graph.nodes.filter(({ op }) => op !== "embed").flatMap(({ inputs }) =>
    inputs.filter((value) => value?.role === "weight" && value.shape.length === 2)
  );
  return weights.map((value) => {
    const kind = kinds.find(({ weights }) => weights.includes(value!));
    return {
      kind: kind?.name ?? "stays",
      slots: depth === 0 ? 0 : kind?.slots ?? 0,
      load: kind ? value!.tensor!.byteLength / rate : 0,
      compute: elementCount(value!.shape as number[]) / MACS + HOST / weights.length,
    };
  });
}

Deno.test("TinyLlama takes 1.068 s a token where nothing overlaps, and 0.550 s with one slot a kind", () => {
  assertEquals(tinyLlama(1).filter(({ load }) => load === 0).length, 1, "the classifier stays");
  assertAlmostEquals(streamTimes(tinyLlama(0)).seconds, 1.0682796621510338, 1e-9);
  for (const depth of [1, 2] as const) {
    const { seconds, load, hidden } = streamTimes(tinyLlama(depth));
    assertAlmostEquals(seconds, 0.5495537580919918, 1e-9);
    assertAlmostEquals(load, 0.5187259040590406, 1e-9);
    assertAlmostEquals(hidden, 1, 1e-9);
  }
});

Deno.test("a second slot hides more where loading and computing take about as long", () => {
  const [one, two] = ([1, 2] as const).map((depth) => streamTimes(tinyLlama(depth, 0.95 * RATE)));
  assert(two!.seconds <= one!.seconds);
  assert(two!.hidden > 0.9, `${two!.hidden}`);
  // No step is shorter than its loads.
  const slow = streamTimes(tinyLlama(2, RATE / 4));
  assertAlmostEquals(slow.seconds, slow.load, 1e-6);
});
