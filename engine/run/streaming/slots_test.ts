import { assert, assertEquals, assertThrows } from "@std/assert";
import { formatBytes, getFormat } from "../../../quant/mod.ts";
import { IN_FILE, LLAMAF_TINY, planLlama } from "../../../tests/support/planned_llama.ts";
import { ResourceError } from "../../errors.ts";
import { estimate } from "../wasm/estimate.ts";
import { chooseStream } from "../wasm/stream_choice.ts";
import { planStream, streamedBytes } from "./slots.ts";

Deno.test("TinyLlama in the INT8 of LlamaF takes 111,488,000 bytes on the device of its products", async () => {
  const plan = await planLlama(LLAMAF_TINY);
  const streamed = planStream(plan, { ...IN_FILE, depth: 1 });
  // qkv 5,324,800, o 4,259,840, w1w3 23,429,120, w2 11,714,560 [LF-8].
  assertEquals(streamed.slotBytes, 44_728_320);
  assertEquals(streamed.stepBytes, 22 * 44_728_320);
  assertEquals(streamedBytes(plan, streamed).productDevice, 111_488_000);
  const twice = planStream(plan, { ...IN_FILE, depth: 2 });
  assertEquals(twice.slotBytes, 2 * 44_728_320);
});

for (
  const [name, bytes, sizes] of [
    ["Llama 2 7B", 524_288, { layers: 32, kvHeads: 32, feedForward: 11_008 }],
    ["ChatGLM2 6B", 28_672, { layers: 28, kvHeads: 2, feedForward: 13_696 }],
  ] as const
) {
  Deno.test(`a token of ${name} takes ${bytes} bytes of keys and values, once [TL-12]`, async () => {
    const plan = await planLlama({
      ...{ ...sizes, hidden: 4096, heads: 32, vocabulary: 32_000, formatOf: () => "Q4_0" },
    });
    // A context of 256, and twice as much for two sessions.
    assertEquals(estimate(plan, { slots: 1 }).states, 256 * bytes);
    assertEquals(estimate(plan, { slots: 2 }).states, 512 * bytes);
  });
}

Deno.test("layers of mixed formats share slots of the largest, and those that stay are spread evenly", async () => {
  const plan = await planLlama({
    ...{ layers: 8, hidden: 256, heads: 4, kvHeads: 4, feedForward: 512, vocabulary: 320 },
    formatOf: (name) => /blk\.[1357]\.ffn_down/.test(name) ? "Q8_0" : "Q4_0",
  });
  const { kinds } = planStream(plan, { ...IN_FILE, depth: 2 });
  const down = kinds.find(({ name }) => name.includes("down"))!;
  assertEquals([down.weights.length, down.slots], [8, 2]);
  assertEquals(down.slotBytes, formatBytes(getFormat("Q8_0"), 256 * 512));
  assert(kinds.every(({ weights }) => weights.length === 8));

  const all = [...plan.steps.flatMap(({ node: { inputs } }) => inputs)]
    .reduce((sum, value) => sum + (value?.tensor?.byteLength ?? 0), 0);
  const half = planStream(plan, { ...IN_FILE, depth: 1, room: 0.65 * all });
  const [{ weights }] = half.kinds as [typeof half.kinds[0]];
  const layers = weights.map(({ name }) => Number(/\d+/.exec(name)![0]));
  assert(layers.length >= 3 && layers.length <= 5, layers.join());
  assert(layers.every((layer, i) => i === 0 || layer - layers[i - 1]! <= 3), layers.join());
});

Deno.test("a model that takes more than is free is streamed, if nobody has said otherwise", async () => {
  const plan = await planLlama({
    ...{ layers: 16, hidden: 512, heads: 8, kvHeads: 8, feedForward: 2048, vocabulary: 320 },
    formatOf: () => "Q8_0",
  });
  const sizes = { slots: 1 }, { weights, states, activations } = estimate(plan, sizes);
  const total = weights + states + activations, memoryBytes = total + 2 ** 25;
  const choose = (wish: Parameters<typeof chooseStream>[2]) =>
    chooseStream(plan, sizes, { memoryBytes, ...wish });
  const asked = choose({ stream: true })!.uses.weights;
  const crowded = choose({ freeBytes: total - 1 })!.uses.weights;
  assert(asked < crowded && crowded < weights, `${asked}, ${crowded}, ${weights}`);
  assertEquals(choose({ freeBytes: total }), undefined);
  assertEquals(choose({ freeBytes: total - 1, stream: false }), undefined);
  // What fits in no way is refused by the check that says what it takes whole.
  assertEquals(choose({ freeBytes: total / 1000 }), undefined);
  // A budget that was given counts alone.
  assertEquals(choose({ freeBytes: total / 1000, maxHostBytes: 100 * total }), undefined);
  assertThrows(() => choose({ freeBytes: 100 * total, maxHostBytes: 1 }), ResourceError);
});
