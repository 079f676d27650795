// Adapters of what is no plain projection: embeddings, experts, and the two halves of an encoder-decoder. As in
// adapters_test.ts they must compute what merged weights compute.

import {
  assertEquals,
  assertGreater,
  assertLess,
  assertNotEquals,
  assertRejects,
} from "@std/assert";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { load } from "../engine/models/load.ts";
import type { LoadOptions, Model } from "../engine/decode/model.ts";
import { embed } from "../engine/pipelines/embed.ts";
import { fillMask } from "../engine/pipelines/fill_mask.ts";
import { beamSearch } from "../engine/pipelines/translate.ts";
import {
  type Change,
  merge,
  randomPair,
  type TestPair,
  writeChangedFolder,
  writeChangedGguf,
  writeGgufAdapter,
  writePeft,
} from "./support/adapters.ts";
import { withFolder } from "./support/folder.ts";
import { GGUF_RULES } from "./support/gguf_rules.ts";
import { checkpointPath } from "./support/seeded_weights.ts";
import { toGguf } from "./support/to_gguf.ts";

const IDS = [1, 5, 9, 60, 17, 33];
const EXACT: LoadOptions = { device: "reference", precision: "exact", threads: 1 };

async function logitsOf(model: Model, scales?: Record<string, number>): Promise<Float32Array> {
  using session = model.createSession();
  if (scales) session.useAdapters(scales);
  if (model.info.network === "encoder-decoder") await session.encode([13, 45, 91, 2]);
  await session.sync(IDS.slice(0, 4));
  await session.eval(IDS.slice(4));
  return session.logits().slice();
}

async function logitsWith(path: string, options: LoadOptions): Promise<Float32Array> {
  using model = await load(path, options);
  return await logitsOf(model);
}

function distance(a: Float32Array, b: Float32Array): number {
  assertEquals(a.length, b.length);
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);
}

/** An embedding [vocabulary, hidden]: B A is its transpose. */
function tablePair(name: string, [vocabulary, hidden]: readonly number[], rank: number): TestPair {
  return { ...randomPair(name, [hidden!, vocabulary!], rank), isTable: true };
}

function merged(pairs: readonly TestPair[], factor: number): Change {
  return (name, values) => {
    const pair = pairs.find((one) => one.name === name);
    return pair ? merge(values, pair, { factor, transposed: pair.isTable ?? false }) : values;
  };
}

for (const device of ["reference", "wasm"] as const) {
  Deno.test(`${device}: an adapter of the embedding equals a merged table, also weighed`, () =>
    withFolder(async (folder) => {
      const options = { ...EXACT, device };
      const base = checkpointPath("llama");
      const pairs = [
        tablePair("model.embed_tokens.weight", [128, 32], 4),
        randomPair("model.layers.1.self_attn.q_proj.weight", [32, 32], 4),
      ];
      writePeft(`${folder}/a`, pairs, { r: 4, lora_alpha: 6 });
      const expected = async (factor: number) => {
        await writeChangedFolder(base, `${folder}/merged`, merged(pairs, factor));
        return await logitsWith(`${folder}/merged`, options);
      };
      const [whole, half] = [await expected(1.5), await expected(0.75)];
      assertGreater(distance(await logitsWith(base, options), whole), 0.01);
      using model = await load(base, { ...options, adapters: [`${folder}/a`], sessions: 2 });
      assertLess(distance(await logitsOf(model), whole), 1e-4);
      assertLess(distance(await logitsOf(model, { a: 0.5 }), half), 1e-4);
    }));

  Deno.test(`${device}: an adapter of experts equals merged experts, also weighed`, () =>
    withFolder(async (folder) => {
      const options = { ...EXACT, device };
      const base = checkpointPath("olmoe");
      const pairs = Array.from({ length: 6 }, (_, expert) => {
        const path = `model.layers.1.mlp.experts.${expert}`;
        return [
          randomPair(`${path}.gate_proj.weight`, [8, 32], 4),
          randomPair(`${path}.up_proj.weight`, [8, 32], 4),
          randomPair(`${path}.down_proj.weight`, [32, 8], 4),
        ];
      }).flat();
      writePeft(`${folder}/a`, pairs, { r: 4, lora_alpha: 6 });
      const expected = async (factor: number) => {
        await writeChangedFolder(base, `${folder}/merged`, merged(pairs, factor));
        return await logitsWith(`${folder}/merged`, options);
      };
      const [whole, half] = [await expected(1.5), await expected(0.75)];
      assertGreater(distance(await logitsWith(base, options), whole), 0.01);
      using model = await load(base, { ...options, adapters: [`${folder}/a`], sessions: 2 });
      assertLess(distance(await logitsOf(model), whole), 1e-4);
      assertLess(distance(await logitsOf(model, { a: 0.5 }), half), 1e-4);
      writePeft(`${folder}/some`, pairs.slice(3), { r: 4, lora_alpha: 6 });
      await assertRejects(
        () => load(base, { ...options, adapters: [`${folder}/some`] }),
        UnsupportedError,
        "adapts 5 of 6 experts",
      );
    }));
}

Deno.test("GGUF adapters of the embedding and of experts equal merged weights", () =>
  withFolder(async (folder) => {
    const check = async (
      base: string,
      pairs: readonly TestPair[],
      arch: string,
      change: Change,
    ) => {
      writeGgufAdapter(`${folder}/a.gguf`, pairs, {
        "general.architecture": ["string", arch],
        "adapter.lora.alpha": ["f32", 6],
      });
      await writeChangedGguf(base, `${folder}/merged.gguf`, change);
      const expected = await logitsWith(`${folder}/merged.gguf`, EXACT);
      const options = { ...EXACT, adapters: [`${folder}/a.gguf`] };
      assertLess(distance(await logitsWith(base, options), expected), 1e-4);
      assertGreater(distance(await logitsWith(base, EXACT), expected), 0.01);
    };
    const name = "blk.1.ffn_down_exps.weight";
    const experts = Array.from({ length: 6 }, () => randomPair(name, [32, 8], 4));
    const config = JSON.parse(Deno.readTextFileSync(`${checkpointPath("olmoe")}/config.json`));
    const path = `${folder}/olmoe.gguf`;
    Deno.writeFileSync(path, await toGguf(checkpointPath("olmoe"), config, GGUF_RULES.olmoe![0]!));
    const table = [tablePair("token_embd.weight", [128, 32], 4)];
    await check(path, table, "olmoe", merged(table, 1.5));
    await check(path, experts, "olmoe", (tensor, values) => {
      if (tensor !== name) return values;
      const parts = experts.map((pair, i) =>
        merge(values.subarray(i * 256, (i + 1) * 256), pair, { factor: 1.5 })
      );
      return Float32Array.from(parts.flatMap((part) => [...part]));
    });
  }));

Deno.test("an adapter of an encoder-decoder changes both halves and what is between them", () =>
  withFolder(async (folder) => {
    const base = checkpointPath("t5");
    const pairs = [
      "encoder.block.0.layer.0.SelfAttention.q",
      "encoder.block.1.layer.0.SelfAttention.v",
      "decoder.block.0.layer.0.SelfAttention.k",
      "decoder.block.1.layer.1.EncDecAttention.v",
      "decoder.block.0.layer.1.EncDecAttention.q",
    ].map((module) => randomPair(`${module}.weight`, [32, 32], 4));
    writePeft(`${folder}/a`, pairs, { r: 4, lora_alpha: 2 });
    await writeChangedFolder(base, `${folder}/merged`, merged(pairs, 0.5));
    const expected = await logitsWith(`${folder}/merged`, EXACT);
    await writeChangedFolder(base, `${folder}/half`, merged(pairs, 0.25));
    const half = await logitsWith(`${folder}/half`, EXACT);
    const plain = await logitsWith(base, EXACT);
    assertGreater(distance(half, expected), 0.01);
    for (const device of ["reference", "wasm"] as const) {
      using model = await load(base, { ...EXACT, device, adapters: [`${folder}/a`] });
      assertLess(distance(await logitsOf(model), expected), 1e-4);
      assertLess(distance(await logitsOf(model, { a: 0.5 }), half), 1e-4);
      assertLess(distance(await logitsOf(model, {}), plain), 1e-4);
    }
    assertGreater(distance(await logitsWith(base, EXACT), expected), 0.01);
    // Its one table has several users, of which PEFT changes one.
    writePeft(`${folder}/b`, [tablePair("shared.weight", [128, 32], 4)], { r: 4, lora_alpha: 2 });
    await assertRejects(
      () => load(base, { ...EXACT, adapters: [`${folder}/b`] }),
      FormatError,
      "is for shared.weight",
    );
  }));

Deno.test("an adapter of an encoder changes its vectors as merged weights do", () =>
  withFolder(async (folder) => {
    const base = checkpointPath("bert");
    const pairs = [
      tablePair("bert.embeddings.word_embeddings.weight", [128, 32], 4),
      randomPair("bert.encoder.layer.1.attention.self.query.weight", [32, 32], 4),
    ];
    writePeft(`${folder}/a`, pairs, { r: 4, lora_alpha: 4 });
    await writeChangedFolder(base, `${folder}/merged`, merged(pairs, 1));
    const vector = async (path: string, adapters: readonly string[] = []) => {
      using model = await load(path, { ...EXACT, adapters });
      return (await embed(model, [[1, 15, 47, 4, 2]], { normalize: false }))[0]!;
    };
    const expected = await vector(`${folder}/merged`);
    assertLess(distance(await vector(base, [`${folder}/a`]), expected), 1e-4);
    const plain = await vector(base);
    assertGreater(distance(plain, expected), 0.01);
    await writeChangedFolder(base, `${folder}/half`, merged(pairs, 0.5));
    const half = await vector(`${folder}/half`);
    using model = await load(base, { ...EXACT, device: "wasm", adapters: [`${folder}/a`] });
    const weighed = async (adapters?: Record<string, number>) =>
      (await embed(model, [[1, 15, 47, 4, 2]], {
        normalize: false,
        ...adapters && { adapters },
      }))[0]!;
    assertLess(distance(await weighed({ a: 0.5 }), half), 1e-4);
    assertLess(distance(await weighed({}), plain), 1e-4);
    assertLess(distance(await weighed(), expected), 1e-4);
    await assertRejects(() => weighed({ b: 1 }), RangeError, 'Cannot use adapter "b"');
  }));

Deno.test("an adapter of a masked language model's head counts as much as a call says", () =>
  withFolder(async (folder) => {
    const base = checkpointPath("bert");
    const pairs = [randomPair("cls.predictions.transform.dense.weight", [32, 32], 4)];
    writePeft(`${folder}/a`, pairs, { r: 4, lora_alpha: 4 });
    await writeChangedFolder(base, `${folder}/half`, merged(pairs, 0.5));
    const best = async (path: string, adapters: readonly string[], scale?: number) => {
      using model = await load(path, { ...EXACT, adapters });
      const options = { maskId: 4, top: 3, ...scale !== undefined && { adapters: { a: scale } } };
      const [first] = await fillMask(model, [1, 15, 47, 4, 30, 2], options);
      return first!.map(({ id, logit }) => [id, Number(logit.toFixed(3))]);
    };
    const half = await best(`${folder}/half`, []);
    assertNotEquals(half, await best(base, []));
    assertEquals(await best(base, [`${folder}/a`], 0.5), half);
    assertEquals(await best(base, [`${folder}/a`], 0), await best(base, []));
  }));

Deno.test("beams of an encoder-decoder are searched with the scales of the call", () =>
  withFolder(async (folder) => {
    const base = checkpointPath("m2m100");
    const pairs = [
      randomPair("model.encoder.layers.0.self_attn.q_proj.weight", [32, 32], 4),
      randomPair("model.decoder.layers.1.encoder_attn.v_proj.weight", [32, 32], 4),
      randomPair("model.decoder.layers.0.self_attn.k_proj.weight", [32, 32], 4),
    ];
    writePeft(`${folder}/a`, pairs, { r: 4, lora_alpha: 4 });
    await writeChangedFolder(base, `${folder}/half`, merged(pairs, 0.5));
    const search = async (path: string, adapters: readonly string[], scale?: number) => {
      using model = await load(path, { ...EXACT, adapters, sessions: 4, logitRows: 3 });
      const options = { beams: 3, maxTokens: 5, endIds: [2] };
      const found = await beamSearch(model, [13, 45, 91, 2], {
        ...options,
        ...scale !== undefined && { adapters: { a: scale } },
      });
      return found.map(({ ids, score }) => [ids, Number(score.toFixed(3))]);
    };
    const half = await search(`${folder}/half`, []);
    assertNotEquals(half, await search(base, []));
    assertEquals(await search(base, [`${folder}/a`], 0.5), half);
  }));
