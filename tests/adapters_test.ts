// Adapters compute what merged weights compute: on the reference and on WASM, for plain and fused projections, in
// both ways of storing them, weighed anew for each session.

import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { generate } from "../engine/decode/generate.ts";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { load } from "../engine/models/load.ts";
import type { LoadOptions, Model } from "../engine/decode/model.ts";
import type { Session } from "../engine/decode/session.ts";
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
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { TINY_LLAMA } from "./support/models.ts";
import type { Typed } from "./support/write_gguf.ts";

const IDS = [1, 5, 9, 60, 17, 33];
const LLAMA = fixturePath("models/llama");
const EXACT: LoadOptions = { device: "reference", precision: "exact" };

const MODULES: readonly [string, number, number][] = [
  ["self_attn.q_proj", 32, 32],
  ["self_attn.k_proj", 16, 32],
  ["self_attn.v_proj", 16, 32],
  ["self_attn.o_proj", 32, 32],
  ["mlp.gate_proj", 64, 32],
  ["mlp.up_proj", 64, 32],
  ["mlp.down_proj", 32, 64],
];

/** Pairs for every projection of the tiny llama, and for its head. */
function llamaPairs(rank: number): TestPair[] {
  const layers = [0, 1].flatMap((layer) =>
    MODULES.map(([module, rows, columns]) =>
      randomPair(`model.layers.${layer}.${module}.weight`, [rows, columns], rank)
    )
  );
  return [...layers, randomPair("lm_head.weight", [128, 32], rank)];
}

function mergeAll(pairs: readonly TestPair[], factor: number, transposed = false): Change {
  return (name, values) => {
    const pair = pairs.find((one) => one.name === name);
    return pair ? merge(values, pair, { factor, transposed }) : values;
  };
}

async function logitsOf(model: Model, scales?: Record<string, number>): Promise<Float32Array> {
  using session = model.createSession();
  if (scales) session.useAdapters(scales);
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

for (const device of ["reference", "wasm"] as const) {
  Deno.test(`a PEFT adapter equals merged weights on ${device}, also weighed and beside another`, () =>
    withFolder(async (folder) => {
      const options = { ...EXACT, device, threads: 1 };
      const first = llamaPairs(4), second = llamaPairs(3).slice(3, 9);
      writePeft(`${folder}/first`, first, { r: 4, lora_alpha: 6 });
      writePeft(`${folder}/second`, second, { r: 3, lora_alpha: 2, use_rslora: true });
      const merged = async (change: Change) => {
        await writeChangedFolder(LLAMA, `${folder}/merged`, change);
        return await logitsWith(`${folder}/merged`, options);
      };
      const plain = await logitsWith(LLAMA, options);
      const one = await merged(mergeAll(first, 1.5));
      assertGreater(distance(plain, one), 0.01);

      using model = await load(LLAMA, {
        ...options,
        sessions: 2,
        adapters: [`${folder}/first`, { path: `${folder}/second`, scale: 0.5, name: "more" }],
      });
      assertEquals(model.adapters, [
        { name: "first", scale: 1, matrices: 15 },
        { name: "more", scale: 0.5, matrices: 6 },
      ]);
      assertLess(distance(await logitsOf(model, { first: 1 }), one), 1e-4);
      assertLess(distance(await logitsOf(model, {}), plain), 1e-4);
      const weighed = await merged(mergeAll(first, -0.5 * 1.5));
      assertLess(distance(await logitsOf(model, { first: -0.5 }), weighed), 1e-4);
      const one2 = mergeAll(first, 1.5), two = mergeAll(second, 0.5 * 2 / Math.sqrt(3));
      const both = await merged((name, values) => two(name, one2(name, values)));
      assertLess(distance(await logitsOf(model), both), 1e-4);
    }));
}

Deno.test("a GGUF adapter equals merged weights", () =>
  withFolder(async (folder) => {
    const shapes: [string, number[]][] = [
      ["blk.0.attn_q.weight", [32, 32]],
      ["blk.1.attn_k.weight", [16, 32]],
      ["blk.1.ffn_down.weight", [32, 64]],
      ["blk.0.attn_output.weight", [32, 32]],
    ];
    const pairs = shapes.map(([name, shape]) => randomPair(name, shape, 8));
    writeGgufAdapter(`${folder}/a.gguf`, pairs, {
      "general.architecture": ["string", "llama"],
      "adapter.lora.alpha": ["f32", 4],
    });
    await writeChangedGguf(TINY_LLAMA, `${folder}/merged.gguf`, mergeAll(pairs, 0.5));
    const merged = await logitsWith(`${folder}/merged.gguf`, EXACT);
    const options = { ...EXACT, adapters: [`${folder}/a.gguf`] };
    assertLess(distance(await logitsWith(TINY_LLAMA, options), merged), 1e-4);
    assertGreater(distance(await logitsWith(TINY_LLAMA, EXACT), merged), 0.01);
  }));

Deno.test("an adapter of a fused, transposed projection is cut as the projection is", () =>
  withFolder(async (folder) => {
    const base = fixturePath("models/gpt2");
    using plain = await load(base, EXACT);
    const { hidden, feedForward } = plain.info;
    const pairs = [
      randomPair("transformer.h.0.attn.c_attn.weight", [3 * hidden, hidden], 4),
      randomPair("transformer.h.1.mlp.c_proj.weight", [hidden, feedForward], 4),
    ];
    writePeft(`${folder}/a`, pairs, { r: 4, lora_alpha: 4, fan_in_fan_out: true });
    await writeChangedFolder(
      base,
      `${folder}/merged`,
      (name, values) =>
        mergeAll(pairs, 1, true)(name.replace(/^(?!transformer)/, "transformer."), values),
    );
    const merged = await logitsWith(`${folder}/merged`, EXACT);
    const adapted = await logitsWith(base, { ...EXACT, adapters: [`${folder}/a`] });
    assertLess(distance(adapted, merged), 1e-4);
    assertGreater(distance(await logitsOf(plain), merged), 0.001);
  }));

Deno.test("the fast path differs from merged weights no more than it does without adapters", () =>
  withFolder(async (folder) => {
    const pairs = llamaPairs(4);
    writePeft(`${folder}/a`, pairs, { r: 4, lora_alpha: 4 });
    await writeChangedFolder(LLAMA, `${folder}/merged`, mergeAll(pairs, 1));
    const merged = await logitsWith(`${folder}/merged`, EXACT);
    const fast = await logitsWith(LLAMA, { device: "wasm", threads: 1, adapters: [`${folder}/a`] });
    assertLess(distance(fast, merged), 0.02);
  }));

Deno.test("adapters of a streamed model are read as long as it is there", () =>
  withFolder(async (folder) => {
    writePeft(`${folder}/a`, llamaPairs(4), { r: 4, lora_alpha: 4 });
    const options: LoadOptions = {
      ...{ device: "wasm", threads: 1, precision: "exact", adapters: [`${folder}/a`] },
    };
    const whole = await logitsWith(LLAMA, options);
    for (const loaders of [0, 1]) {
      assertEquals(await logitsWith(LLAMA, { ...options, stream: { loaders } }), whole);
    }
  }));

Deno.test("each generation has its own adapters, and a session forgets what others computed", () =>
  withFolder(async (folder) => {
    const pair = randomPair("blk.1.attn_output.weight", [32, 32], 4);
    writeGgufAdapter(`${folder}/a.gguf`, [pair], {
      "general.architecture": ["string", "llama"],
      "adapter.lora.alpha": ["f32", 40],
    });
    using base = await load(TINY_LLAMA, EXACT);
    using model = await load(TINY_LLAMA, { ...EXACT, adapters: [`${folder}/a.gguf`], sessions: 2 });
    const ids = async (target: Model | Session, adapters?: Record<string, number>) =>
      (await generate(target, IDS, { maxTokens: 6, ignoreEos: true, ...adapters && { adapters } })
        .result).ids;
    const plain = await ids(base);
    assertEquals(await ids(model, {}), plain);
    const adapted = await ids(model);
    assert(adapted.join() !== plain.join());
    assertEquals(await ids(model, { a: 1 }), adapted);
    using session = model.createSession();
    assertEquals(await ids(session, {}), plain);
    assertEquals(await ids(session), adapted);
    const saved = await session.save();
    session.useAdapters({});
    assertEquals(session.length, 0);
    await assertRejects(() => session.load(saved), FormatError, "another model");
    session.useAdapters({ a: 1 });
    await session.load(saved);
    assertThrows(() => session.useAdapters({ b: 1 }), RangeError, "loaded with a");
    assertThrows(() => generate(base, IDS, { adapters: { a: 1 } }), RangeError, "loaded with none");
  }));

Deno.test("an adapter that does not fit the model is refused by tensor and shape", () =>
  withFolder(async (folder) => {
    const q = "model.layers.0.self_attn.q_proj.weight";
    const refuse = async (
      pairs: readonly TestPair[],
      config: Record<string, unknown>,
      kind: typeof FormatError | typeof UnsupportedError,
      message: string,
    ) => {
      writePeft(`${folder}/a`, pairs, { r: 4, lora_alpha: 4, ...config });
      const options = { ...EXACT, adapters: [`${folder}/a`] };
      await assertRejects(() => load(LLAMA, options), kind, message);
    };
    const good = randomPair(q, [32, 32], 4);
    await refuse(
      [randomPair(q, [32, 48], 4)],
      {},
      FormatError,
      "[4,48] where [4,32] is needed for",
    );
    await refuse(
      [randomPair(q, [16, 32], 4)],
      {},
      FormatError,
      "[16,4] where [32,4] is needed for",
    );
    const unknown = randomPair("model.layers.7.self_attn.q_proj.weight", [32, 32], 4);
    await refuse([good, unknown], {}, FormatError, "model.layers.7.self_attn.q_proj");
    await refuse([good], { r: 8 }, FormatError, "have rank 4");
    await refuse([good], { use_dora: true }, UnsupportedError, "use_dora");
    await refuse([good], { bias: "all" }, UnsupportedError, "bias");
    await refuse([good], { target_modules: ["q_proj", "k_proj"] }, FormatError, "names k_proj");
    const embedding = randomPair("model.embed_tokens.weight", [128, 32], 4);
    await refuse([good, embedding], {}, FormatError, "can be adapted");
    const options = { ...EXACT, adapters: [`${folder}/a`, `${folder}/a`] };
    await assertRejects(() => load(LLAMA, options), RangeError, "two adapters named a");
    writePeft(`${folder}/a`, [good], { r: 4, lora_alpha: 4 });
    await assertRejects(
      () => load(TINY_LLAMA, { ...EXACT, adapters: [`${folder}/a`] }),
      UnsupportedError,
      "for huggingface files",
    );
    await assertRejects(
      () => load(TINY_LLAMA, { ...EXACT, adapters: [TINY_LLAMA] }),
      FormatError,
      "general.type",
    );
  }));

Deno.test("keys of a GGUF adapter that are not done are refused or told", () =>
  withFolder(async (folder) => {
    const pair = randomPair("blk.0.attn_q.weight", [32, 32], 8);
    const warningsOf = async (key: string, value: Typed) => {
      writeGgufAdapter(`${folder}/a.gguf`, [pair], {
        "general.architecture": ["string", "llama"],
        "adapter.lora.alpha": ["f32", 4],
        [key]: value,
      });
      using model = await load(TINY_LLAMA, { ...EXACT, adapters: [`${folder}/a.gguf`] });
      return model.info.warnings;
    };
    const plain = await warningsOf("adapter.lora.task_name", ["string", "x"]);
    for (const key of ["adapter.lora.prompt_prefix", "adapter.lora.brand_new"]) {
      const warnings = await warningsOf(key, ["string", "x"]);
      assertEquals(warnings.filter((one) => !plain.includes(one)).length, 1, key);
      assert(warnings.some((one) => one.includes(key)), key);
    }
    await assertRejects(
      () => warningsOf("adapter.alora.invocation_tokens", ["array", [5], "u32"]),
      UnsupportedError,
      "adapter.alora.invocation_tokens",
    );
  }));
