// Pooled heads: the function, and models that are loaded with fewer heads than their files have.

import { assertAlmostEquals, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { load } from "../engine/models/load.ts";
import type { LoadOptions } from "../engine/decode/model.ts";
import { meanPoolKV } from "../engine/models/derived_tensors/pooled_heads.ts";
import { type Change, randomPair, writeChangedFolder, writePeft } from "./support/adapters.ts";
import { fixturePath } from "./support/fixtures.ts";
import { checkpointPath } from "./support/seeded_weights.ts";
import { random } from "./support/weights.ts";

const LLAMA = fixturePath("models/llama"); // 4 heads, 2 of keys and values, 8 channels each
const SIZES = { heads: 2, kvHeads: 1, headDim: 8 };

async function logitsOf(path: string, options: LoadOptions = {}): Promise<Float32Array> {
  using model = await load(path, { device: "wasm", threads: 1, precision: "exact", ...options });
  using session = model.createSession();
  await session.sync([1, 5, 9, 60, 17, 33]);
  return session.logits().slice();
}

Deno.test("each row of a pooled head is the mean of the rows of its group", () => {
  const next = random(3);
  const weights = Float32Array.from({ length: 6 * 4 * 5 }, next);
  const pooled = meanPoolKV(weights, { heads: 6, kvHeads: 2, headDim: 4 });
  assertEquals(pooled.length, 2 * 4 * 5);
  for (const [g, d, k] of [[0, 0, 0], [0, 3, 4], [1, 2, 1]] as const) {
    const at = (head: number) => weights[(head * 4 + d) * 5 + k]!;
    const mean = (at(3 * g) + at(3 * g + 1) + at(3 * g + 2)) / 3;
    assertAlmostEquals(pooled[(g * 4 + d) * 5 + k]!, mean, 1e-6);
  }
});

Deno.test("as many heads as there are leaves the weights as they are", () => {
  const weights = Float32Array.from({ length: 24 }, random(4));
  assertEquals(meanPoolKV(weights, { heads: 3, kvHeads: 3, headDim: 4 }), weights);
});

Deno.test("sizes that do not fit together are refused", () => {
  const weights = new Float32Array(24);
  assertThrows(() => meanPoolKV(weights, { heads: 3, kvHeads: 2, headDim: 4 }), RangeError);
  assertThrows(() => meanPoolKV(weights, { heads: 5, kvHeads: 1, headDim: 4 }), RangeError);
});

Deno.test("a model with pooled heads computes what one with their means written into all heads does", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const repeat: Change = (name, values) => {
      if (!/[kv]_proj/.test(name)) return values;
      const mean = meanPoolKV(values, SIZES);
      return new Float32Array([...mean, ...mean]);
    };
    await writeChangedFolder(LLAMA, folder, repeat);
    const expected = await logitsOf(folder), plain = await logitsOf(LLAMA);
    const pooled = await logitsOf(LLAMA, { kvHeads: 1 });
    pooled.forEach((value, i) => assertAlmostEquals(value, expected[i]!, 1e-4));
    assertEquals(await logitsOf(LLAMA, { kvHeads: 2 }), plain);
    using model = await load(LLAMA, { device: "reference", kvHeads: 1 });
    using whole = await load(LLAMA, { device: "reference" });
    assertEquals(model.info.kvHeads, 1);
    assertEquals(2 * model.memory.sessionCache, whole.memory.sessionCache);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("an adapter of heads that were pooled is refused", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const pair = randomPair("model.layers.0.self_attn.k_proj.weight", [16, 32], 4);
    writePeft(`${folder}/a`, [pair], { r: 4, lora_alpha: 4 });
    const options = { kvHeads: 1, adapters: [`${folder}/a`] };
    await assertRejects(() => logitsOf(LLAMA, options), FormatError, "cannot be adapted");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("heads that cannot be pooled are refused", async () => {
  await assertRejects(() => logitsOf(LLAMA, { kvHeads: 3 }), RangeError, "must divide the 2");
  await assertRejects(() => logitsOf(LLAMA, { kvHeads: 0 }), RangeError, "kvHeads");
  const latent = checkpointPath("deepseek_v3");
  await assertRejects(() => logitsOf(latent, { kvHeads: 1 }), UnsupportedError, "cannot be pooled");
});
