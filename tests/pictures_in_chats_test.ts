// Pictures in chats beside everything that sessions do: caches that are shared, given up, rewound and saved, steps that are
// split and joined; and what is said where a picture cannot be shown. Two families: rows that are rotated by their place
// (Qwen2.5-VL), and rows that see their whole picture (Gemma 3). What they answer is held beside transformers elsewhere.

import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { chat, type ChatMessage, generate, load, type LoadOptions, readPicture } from "../mod.ts";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { readConstant } from "../engine/models/constants.ts";
import { openModel } from "../engine/models/open_model.ts";
import { openSight, planSight } from "../engine/models/sight/open_sight.ts";
import { fixturePath } from "./support/fixtures.ts";
import { type TensorSpec, writeGguf } from "./support/write_gguf.ts";
import { unpackedVisionLanguage } from "./support/vision_language.ts";

const FOLDER = unpackedVisionLanguage();
const FAMILIES = ["gemma3_vl_toy", "qwen25_vl_toy"] as const;
const GREEDY = { maxTokens: 6, temperature: 0, ignoreEos: true } as const;
const [A, B] = ["a.png", "b.png"].map((name) => `${FOLDER}/images/${name}`) as [string, string];

const open = (name: string, options: LoadOptions = {}) =>
  load(`${FOLDER}/${name}`, { precision: "exact", kvFormat: "F32", threads: 2, ...options });

function asking(...images: readonly unknown[]): ChatMessage[] {
  const parts = images.map((image) => ({ type: "image", image }));
  return [{ role: "user", content: [...parts, { type: "text", text: "What is this?" }] }];
}

const idsOf = async (target: Parameters<typeof chat>[0], images: readonly unknown[]) =>
  (await chat(target, asking(...images), GREEDY).result).ids;

/** Answers of a model that has seen nothing before. */
async function fresh(name: string, images: readonly unknown[]): Promise<readonly number[]> {
  using model = await open(name);
  return await idsOf(model, images);
}

for (const name of FAMILIES) {
  Deno.test(`${name}: a picture is found in the cache again, and no other one is taken for it`, async () => {
    using model = await open(name);
    const pixels = await readPicture(await Deno.readFile(A), { alpha: "drop" });
    // The same size, so that their tokens are the same; one pixel differs.
    const other = { ...pixels, data: pixels.data.map((value, i) => i === 0 ? value ^ 255 : value) };
    const first = await chat(model, asking(A), GREEDY).result;
    const again = await chat(model, asking(pixels), GREEDY).result;
    const third = await chat(model, asking(other), GREEDY).result;
    assertEquals(again.ids, first.ids);
    assertEquals(again.stats.prefillTokens, 1);
    assert(third.stats.prefillTokens > 9, `${third.stats.prefillTokens}`);
    assertEquals(third.ids, await fresh(name, [other]));
    assertEquals(await idsOf(model, [B, A]), await fresh(name, [B, A]));
  });

  Deno.test(`${name}: a session with pictures is rewound, saved and taken up by another model`, async () => {
    using model = await open(name);
    using session = model.createSession();
    const { ids } = await chat(session, asking(A), GREEDY).result;
    const prompt = session.tokens.slice(0, session.length - GREEDY.maxTokens + 1);
    const picture = prompt.findIndex((id) => id < 0);
    assert(picture > 0);
    session.rewind(prompt.length - 2);
    await session.eval(prompt.slice(-2));
    assertEquals(best(session.logits()), ids[0]);
    session.rewind(picture);
    await session.sync(prompt);
    assertEquals(best(session.logits()), ids[0]);
    const saved = await session.save();
    using elsewhere = await open(name);
    // Its numbers are others there.
    await chat(elsewhere, asking(B), { ...GREEDY, maxTokens: 1 }).result;
    using taken = elsewhere.createSession();
    await taken.load(saved);
    assertEquals(taken.length, prompt.length);
    await taken.eval([ids[0]!]);
    assertEquals(best(taken.logits()), ids[1]);
    taken.rewind(picture);
    const tail = taken.tokens.length;
    assertEquals(tail, picture);
    const damaged = saved.slice();
    damaged[damaged.length - 40]! ^= 1;
    await assertRejects(() => taken.load(damaged), FormatError, "checksum");
  });

  Deno.test(`${name}: answers with and without pictures share steps, however these are cut`, async () => {
    const asked = [[A], [], [B], [A, B], [B, A]] as const;
    const alone = [];
    for (const images of asked) alone.push(await fresh(name, images));
    // Fewer rows than a prompt has, and caches that do not hold all of them.
    for (const options of [{}, { batch: 24 }, { batch: 24, cacheTokens: 128 }]) {
      using model = await open(name, options);
      const together = await Promise.all(asked.map((images) => idsOf(model, images)));
      assertEquals(together, alone, JSON.stringify(options));
    }
  });
}

function best(logits: Float32Array): number {
  return logits.indexOf(Math.max(...logits));
}

Deno.test("a picture comes by path, address, bytes and pixels, in a chat and beside a text", async () => {
  using model = await open("qwen25_vl_toy");
  const bytes = await Deno.readFile(A);
  const address = `data:image/png;base64,${bytes.toBase64()}`;
  const wanted = await idsOf(model, [A]);
  for (const image of [bytes, address, new URL(`file://${A}`)]) {
    assertEquals(await idsOf(model, [image]), wanted);
  }
  const parts = [
    { type: "image_url", image_url: { url: address } },
    { type: "text", text: "What is this?" },
  ];
  const { ids } = await chat(model, [{ role: "user", content: parts }], GREEDY).result;
  assertEquals(ids, wanted);
  const plain = (prompt: string) => generate(model, prompt, { ...GREEDY, images: [A] }).result;
  const [front, marked] = await Promise.all([plain(" hi"), plain("<|image_pad|> hi")]);
  assertEquals(front.ids, marked.ids);
});

Deno.test("what cannot be shown is said: no sight, no picture, too many places, a tower of another model", async () => {
  using blind = await load(fixturePath("models/llama_formats/llama.Q8_0.gguf"), {
    chatTemplate: "{% for m in messages %}{{ m.content }}{% endfor %}",
  });
  const seen = assertThrows(() => chat(blind, asking(A)), UnsupportedError);
  assertMatch(
    seen.message,
    /reads text only, and message 0 has a part of type "image"\. Use a model/,
  );
  assertThrows(() => generate(blind, "hi", { images: [A] }), UnsupportedError, "sees no pictures");
  using model = await open("gemma3_vl_toy");
  assertThrows(() => chat(model, [{ role: "user", content: [{ type: "image" }] }]), TypeError);
  await assertRejects(() => idsOf(model, ["/nowhere.png"]), Error, "/nowhere.png");
  await assertRejects(() => idsOf(model, ["data:image/png;base64,AAAA"]), FormatError, "data: URL");
  await assertRejects(() => idsOf(model, ["data:nothing"]), FormatError, "no picture in base64");
  const cut = (await Deno.readFile(A)).subarray(0, 200);
  await assertRejects(() => idsOf(model, [cut]), FormatError);
  for (const places of [1, 3]) {
    const prompt = "<start_of_image>".repeat(places);
    const error = assertThrows(() => generate(model, prompt, { images: [A, B] }), FormatError);
    assertMatch(error.message, new RegExp(`places for ${places} pictures, and 2 are given`));
  }
  // A template without a place for pictures still gets one.
  const plain = { chatTemplate: "{% for m in messages %}{{ m.content }}{% endfor %}" };
  using other = await open("gemma3_vl_toy", plain);
  assertEquals((await idsOf(other, [A])).length, 6);
  const small = await assertRejects(() => open("gemma3_vl_toy", { batch: 8 }), UnsupportedError);
  assertMatch(small.message, /9 rows that see each other, and a step has 8/);
  for (const name of FAMILIES) {
    const file = await openModel(`${FOLDER}/${name}`);
    const { sight } = await openSight(file, {});
    const fit = () => planSight(sight!, { hidden: 48, batch: 64, options: {} });
    assertThrows(fit, FormatError, "of different models");
    file.close();
  }
});

/** What llama.cpp's converter makes of a family: names of projectors, and what it says of its tower. */
interface Converted {
  readonly tower: string;
  readonly projector: readonly (readonly [RegExp, string])[];
  readonly values: Parameters<typeof writeGguf>[0];
}

const HALF = ["array", [0.5, 0.5, 0.5], "f32"] as const;
const CONVERTED: Readonly<Record<string, Converted>> = {
  gemma3_vl_toy: {
    tower: "vision_tower",
    projector: [
      [/^multi_modal_projector\.mm_soft_emb_norm/, "mm.soft_emb_norm"],
      [/^multi_modal_projector\.mm_input_projection_weight/, "mm.input_projection.weight"],
    ],
    values: {
      "clip.projector_type": ["string", "gemma3"],
      "clip.vision.image_size": ["u32", 48],
      "clip.vision.attention.head_count": ["u32", 2],
      "clip.vision.projector.scale_factor": ["u32", 2],
    },
  },
  idefics3_toy: {
    tower: "model\\.vision_model",
    projector: [[/^model\.connector\.modality_projection\.proj/, "mm.model.fc"]],
    values: {
      "clip.projector_type": ["string", "idefics3"],
      "clip.vision.image_size": ["u32", 32],
      "clip.vision.preproc_image_size": ["u32", 64],
      "clip.vision.attention.head_count": ["u32", 4],
      "clip.vision.projector.scale_factor": ["u32", 2],
    },
  },
};

/** Names of the tower of SigLIP that both have. */
const TOWER: readonly (readonly [string, string])[] = [
  ["embeddings\\.patch_embedding", "v.patch_embd"],
  ["embeddings\\.position_embedding", "v.position_embd"],
  ["post_layernorm", "v.post_ln"],
  ["encoder\\.layers\\.(\\d+)\\.self_attn\\.out_proj", "v.blk.$1.attn_out"],
  ["encoder\\.layers\\.(\\d+)\\.self_attn\\.(.)_proj", "v.blk.$1.attn_$2"],
  ["encoder\\.layers\\.(\\d+)\\.layer_norm", "v.blk.$1.ln"],
  ["encoder\\.layers\\.(\\d+)\\.mlp\\.fc1", "v.blk.$1.ffn_up"],
  ["encoder\\.layers\\.(\\d+)\\.mlp\\.fc2", "v.blk.$1.ffn_down"],
];

/** The tower of a folder as a mmproj file; `turns`: with the names of feed-forward matrices exchanged. */
async function writeMmproj(
  path: string,
  family: string,
  { turns = false, ...changes }: {
    readonly turns?: boolean;
    readonly values?: Converted["values"];
  } = {},
): Promise<void> {
  const { tower, projector, values } = CONVERTED[family]!, own = { ...values, ...changes.values };
  const rules = [
    ...TOWER.map(([from, to]) => [new RegExp(`^${tower}\\.${from}`), to] as const),
    ...projector,
  ];
  const file = await openModel(`${FOLDER}/${family}`);
  const tensors = [];
  for (const [name, tensor] of file.tensors) {
    const rule = rules.find(([pattern]) => pattern.test(name));
    if (!rule) continue;
    const values = await readConstant(tensor);
    const own = name.replace(...rule);
    const base = own.startsWith("mm.soft_emb_norm") ? 1 : 0;
    tensors.push({
      name: turns
        ? own.replace(/ffn_(up|down)/, (_, way) => way === "up" ? "ffn_down" : "ffn_up")
        : own,
      dims: tensor.shape.toReversed(),
      type: 0,
      data: new Uint8Array(values.map((value) => value + base).buffer),
    });
  }
  file.close();
  await Deno.writeFile(
    path,
    writeGguf({
      "general.architecture": ["string", "clip"],
      "clip.has_vision_encoder": ["bool", true],
      "clip.use_gelu": ["bool", true],
      "clip.vision.patch_size": ["u32", 8],
      "clip.vision.embedding_length": ["u32", 32],
      "clip.vision.feed_forward_length": ["u32", 40],
      "clip.vision.block_count": ["u32", 2],
      "clip.vision.attention.layer_norm_epsilon": ["f32", 1e-6],
      "clip.vision.image_mean": HALF,
      "clip.vision.image_std": HALF,
      ...own,
    }, tensors),
  );
}

Deno.test("a mmproj file looks at pictures as the tower that it was made of", async () => {
  for (const family of Object.keys(CONVERTED)) {
    const wanted = await fresh(family, [A, B]);
    for (const turns of [false, true]) {
      const path = `${FOLDER}/mmproj-${family}-${turns}.gguf`;
      await writeMmproj(path, family, { turns });
      using model = await open(family, { mmproj: path });
      assertEquals(await idsOf(model, [A, B]), wanted, family);
      assertEquals(model.info.warnings, []);
    }
  }
  const other = () =>
    open("qwen25_vl_toy", { mmproj: `${FOLDER}/mmproj-gemma3_vl_toy-false.gguf` });
  const error = await assertRejects(other, FormatError);
  assertMatch(error.message, /a token <start_of_image>, and this one has none/);
  const none = open("gemma3_vl_toy", { mmproj: `${FOLDER}/gemma3_vl_toy/model.safetensors` });
  await assertRejects(() => none, FormatError, "is no mmproj file");
  const path = `${FOLDER}/mmproj-uneven.gguf`;
  await writeMmproj(path, "gemma3_vl_toy", {
    values: { "clip.vision.projector.scale_factor": ["u32", 4] },
  });
  const uneven = () => open("gemma3_vl_toy", { mmproj: path });
  await assertRejects(uneven, UnsupportedError, "squares of 4 patches of 6 × 6");
});

/** The tower of Qwen2.5-VL as llama.cpp's converter writes it: queries, keys and values apart, a frame at a time. */
async function writeQwenMmproj(path: string): Promise<void> {
  const file = await openModel(`${FOLDER}/qwen25_vl_toy`), tensors: TensorSpec[] = [];
  const add = (name: string, shape: readonly number[], values: Float32Array) =>
    tensors.push({
      ...{ name, dims: shape.toReversed(), type: 0 },
      data: new Uint8Array(values.slice().buffer),
    });
  for (const [name, tensor] of file.tensors) {
    if (!name.startsWith("visual.")) continue;
    const values = await readConstant(tensor), { shape } = tensor;
    if (name.includes("qkv")) {
      const rows = shape[0]! / 3, size = values.length / 3;
      for (const [i, letter] of ["q", "k", "v"].entries()) {
        const own = name.replace(/^visual\.blocks\.(\d+)\.attn\.qkv/, `v.blk.$1.attn_${letter}`);
        add(own, [rows, ...shape.slice(1)], values.subarray(i * size, (i + 1) * size));
      }
    } else if (name.includes("patch_embed")) {
      const window = shape[3]! * shape[4]!, wanted = [shape[0]!, shape[1]!, shape[3]!, shape[4]!];
      for (const frame of [0, 1]) {
        const own = values.filter((_, i) => Math.floor(i / window) % 2 === frame);
        add(`v.patch_embd.weight${frame ? ".1" : ""}`, wanted, own);
      }
    } else {
      const own = QWEN.reduce((text, [pattern, to]) => text.replace(pattern, to), name);
      add(own, shape, values);
    }
  }
  file.close();
  await Deno.writeFile(
    path,
    writeGguf({
      "general.architecture": ["string", "clip"],
      "clip.has_vision_encoder": ["bool", true],
      "clip.projector_type": ["string", "qwen2.5vl_merger"],
      "clip.use_silu": ["bool", true],
      "clip.vision.image_size": ["u32", 560],
      "clip.vision.patch_size": ["u32", 4],
      "clip.vision.embedding_length": ["u32", 32],
      "clip.vision.feed_forward_length": ["u32", 40],
      "clip.vision.block_count": ["u32", 3],
      "clip.vision.attention.head_count": ["u32", 2],
      "clip.vision.attention.layer_norm_epsilon": ["f32", 1e-6],
      "clip.vision.n_wa_pattern": ["u32", 3],
      "clip.vision.window_size": ["u32", 16],
      "clip.vision.image_mean": ["array", [0.48145466, 0.4578275, 0.40821073], "f32"],
      "clip.vision.image_std": ["array", [0.26862954, 0.26130258, 0.27577711], "f32"],
    }, tensors),
  );
}

const QWEN: readonly (readonly [RegExp, string])[] = [
  [/^visual\.blocks\.(\d+)\.attn\.proj/, "v.blk.$1.attn_out"],
  [/^visual\.blocks\.(\d+)\.norm/, "v.blk.$1.ln"],
  [/^visual\.blocks\.(\d+)\.mlp\.(\w+)_proj/, "v.blk.$1.ffn_$2"],
  [/^visual\.merger\.ln_q/, "v.post_ln"],
  [/^visual\.merger\.mlp/, "mm"],
];

Deno.test("a mmproj file of Qwen2.5-VL looks at pictures as its tower, whose sizes it leaves free", async () => {
  const path = `${FOLDER}/mmproj-qwen.gguf`;
  await writeQwenMmproj(path);
  // The file does not say how many pixels a picture has: one of the folder's most is left as it is by both.
  const few = { pictureRows: 16 } as const, data = new Uint8Array(3072).map((_, i) => i * i % 251);
  const large = { width: 32, height: 32, data };
  using whole = await open("qwen25_vl_toy", few);
  using model = await open("qwen25_vl_toy", { ...few, mmproj: path });
  assertEquals(await idsOf(model, [large]), await idsOf(whole, [large]));
  assertEquals(model.info.warnings, whole.info.warnings);
});

Deno.test("a model that sees is loaded without what looks at pictures, and answers texts the same", async () => {
  const texts = [{ role: "user", content: "Hello" }];
  using whole = await open("qwen25_vl_toy");
  using half = await open("qwen25_vl_toy", { pictures: false });
  const answers = [];
  for (const model of [whole, half]) answers.push((await chat(model, texts, GREEDY).result).ids);
  assertEquals(answers[1], answers[0]);
  assertThrows(() => chat(half, asking(A)), UnsupportedError, "reads text only");
});
