// Encoders of pictures through the public calls, on every device beside transformers' answers, and what they refuse.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import {
  classify,
  classifyImage,
  embed,
  embedImage,
  load,
  loadImageGraph,
  matchImages,
  type Model,
  type PixelValues,
  preparePictures,
  readPicture,
  ResourceError,
  TroodonError,
  UnsupportedError,
} from "../mod.ts";
import type { DeviceName } from "../engine/run/backend.ts";
import { pictures } from "../tools/fixtures/pictures.ts";
import { fixturePath } from "./support/fixtures.ts";
import { gpuTest } from "./support/gpu.ts";
import { withFolder } from "./support/folder.ts";
import { floats, type GraphParts, longs, type Port, writeOnnx } from "./support/write_onnx.ts";

const FOLDER = fixturePath("pictures");

function open(name: string): Promise<Model> {
  return load(`${FOLDER}/${name}`, { device: "wasm", threads: 1, precision: "exact" });
}

async function picture(name = "inputs/gradient.png") {
  return await readPicture(await Deno.readFile(`${FOLDER}/${name}`));
}

/** What a device computes of the toy models; wasm is in pictures_test.ts. */
async function checkOn(device: DeviceName): Promise<void> {
  const cases = pictures.cases(FOLDER, { device, full: false });
  for await (const { name, run } of cases) {
    if (/_toy\/(states|scores|vectors|texts|matches)$/.test(name)) await run!();
  }
}

Deno.test("the reference computes pictures as transformers does", () => checkOn("reference"));

gpuTest("the GPU computes pictures as transformers does", () => checkOn("gpu"));

Deno.test("a picture's vector does not hang on the pictures around it, nor on their number", async () => {
  using model = await open("clip_toy");
  const [a, b] = [await picture(), await picture("inputs/glyphs.webp")];
  const alone = await embedImage(model, a);
  const many = await embedImage(model, Array.from({ length: 60 }, (_, i) => i % 2 ? b : a));
  assertEquals(many.length, 60);
  for (const i of [0, 2, 58]) assertEquals(many[i], alone[0]);
  const both = await Promise.all([embedImage(model, b), embedImage(model, a)]);
  assertEquals([both[0]![0], both[1]![0]], [many[1], many[0]]);
});

Deno.test("labels of one's own are texts, chosen among (CLIP) or each by itself (SigLIP)", async () => {
  const labels = ["cat", "page of letters", "gradient"], image = await picture();
  for (const name of ["clip_toy", "siglip_toy"]) {
    using model = await open(name);
    const [found] = await classifyImage(model, image, { labels });
    const texts = labels.map((label) => `This is a photo of ${label}.`);
    const [matches] = await matchImages(model, { images: image, texts });
    const sum = matches!.reduce((total, { probability }) => total + probability, 0);
    assertEquals(Math.abs(sum - 1) < 1e-5, name === "clip_toy");
    assertEquals(
      found!.map(({ label, logit }) => ({ label, logit })),
      matches!.map(({ logit }, i) => ({ label: labels[i]!, logit }))
        .sort((a, b) => b.logit - a.logit),
    );
    const [best] = await classifyImage(model, image, { labels, template: "{}", top: 1 });
    const [plain] = await matchImages(model, { images: image, texts: labels });
    assertEquals(best!.length, 1);
    assertEquals(best![0]!.logit, Math.max(...plain!.map(({ logit }) => logit)));
    const [vector] = await embed(model, labels.slice(0, 1));
    const [seen] = await embedImage(model, image);
    const cosine = vector!.reduce((total, value, i) => total + value * seen![i]!, 0);
    assertEquals(cosine, plain![0]!.similarity);
  }
});

Deno.test("what a model cannot do with pictures is said by name", async () => {
  const image = await picture();
  using texts = await load(fixturePath("models/bert"), { device: "reference" });
  using clip = await open("clip_toy");
  using vit = await open("vit_toy");
  const refused:
    readonly (readonly [() => Promise<unknown>, new (...given: never[]) => Error, RegExp])[] = [
      [
        () => classifyImage(texts, image),
        UnsupportedError,
        /cannot classify pictures.*model of texts/,
      ],
      [() => embedImage(texts, image), UnsupportedError, /cannot embed pictures/],
      [() => classifyImage(clip, image), UnsupportedError, /no labels of its own.*Give labels/],
      [
        () => classifyImage(vit, image, { labels: ["cat"] }),
        UnsupportedError,
        /no vectors of texts.*Use CLIP/,
      ],
      [
        () => classify(vit, ["a text"]),
        UnsupportedError,
        /cannot classify texts: it is no encoder/,
      ],
      [() => classifyImage(clip, image, { labels: [] }), RangeError, /no text/],
      [
        () => classifyImage(clip, image, { labels: ["a"], template: "a photo" }),
        RangeError,
        /no \{\}/,
      ],
      [() => classifyImage(vit, image, { template: "{}" }), RangeError, /without labels/],
      [() => classifyImage(vit, image, { top: 0 }), RangeError, /top 0/],
      [() => embedImage(vit, []), RangeError, /no picture/],
      [() => embedImage(vit, "cat.jpg" as never), TypeError, /readPicture\(\)/],
      [() => embedImage(vit, new Uint8Array(9) as never), TypeError, /readPicture\(\)/],
      [() => embedImage(vit, { ...image, width: 7 }), RangeError, /picture of 7 × /],
      [() => embedImage(null as never, image), TypeError, /give a model from load\(\)/],
      [() => classifyImage(clip, image, { labels: "cat" as never }), TypeError, /list of texts/],
      [() => embedImage(vit, image, { normalise: true } as never), RangeError, /normalize/],
      [() => embedImage(vit, pixels(1, 4, 24, 24)), RangeError, /\[4, 24, 24\].*\[3, 24, 24\]/],
      [() => embedImage(vit, pixels(1, 3, 24, 32)), RangeError, /\[3, 24, 32\]/],
      [() => embedImage(vit, pixels(0, 3, 24, 24)), RangeError, /no picture/],
      [
        () => embedImage(vit, { ...pixels(1, 3, 24, 24), data: new Float32Array(3) }),
        RangeError,
        /3 values/,
      ],
      [
        () =>
          embedImage(vit, pixels(9, 3, 24, 24), { signal: AbortSignal.abort(new Error("stop")) }),
        Error,
        /stop/,
      ],
    ];
  for (const [call, kind, message] of refused) {
    const error = await assertRejects(call, kind as new () => Error);
    assertMatch(error.message, message);
  }
  assert(vit.info.network === "picture" && vit.info.labels === 5);
  const { message } = assertThrows(() => vit.createSession(), UnsupportedError);
  assertMatch(message, /looks at pictures.*embedImage\(\)/);
});

function pixels(...dims: readonly [number, number, number, number]): PixelValues {
  return { data: new Float32Array(dims.reduce((a, b) => a * b, 1)), dims };
}

Deno.test("broken and huge pictures are refused before they are looked at", async () => {
  const file = await Deno.readFile(`${FOLDER}/inputs/gradient.png`);
  const broken = await assertRejects(() => readPicture(file.slice(0, 60)));
  assert(broken instanceof TroodonError);
  await assertRejects(() => readPicture(file, { maxPixels: 16 }), ResourceError);
});

Deno.test("a config that does not fit the weights, or is no model of pictures, is a named error", async () => {
  const folder = await Deno.makeTempDir();
  const loadWith = async (change: object, prepared: object = {}, name = "vit_toy") => {
    const path = `${FOLDER}/${name}`;
    const config = JSON.parse(await Deno.readTextFile(`${path}/config.json`));
    const processor = JSON.parse(await Deno.readTextFile(`${path}/preprocessor_config.json`));
    await Deno.copyFile(`${path}/model.safetensors`, `${folder}/model.safetensors`);
    await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify({ ...config, ...change }));
    await Deno.writeTextFile(
      `${folder}/preprocessor_config.json`,
      JSON.stringify({ ...processor, ...prepared }),
    );
    return await load(folder, { device: "reference" });
  };
  try {
    for (
      const [change, prepared, message, name] of [
        [{ patch_size: 4 }, {}, /patch_embeddings.*\[32,3,8,8\] where \[32,3,4,4\]/],
        [{ num_channels: 1 }, {}, /\[32,3,8,8\] where \[32,1,8,8\]/],
        [
          { image_size: 40 },
          { size: { height: 40, width: 40 } },
          /position_embeddings.*\[1,10,32\]/,
        ],
        [{}, { size: { height: 48, width: 48 } }, /table of places is for 3 × 3 patches.*6 × 6/],
        [{}, { image_processor_type: "OddImageProcessor" }, /OddImageProcessor/],
        [{ patch_size: 32 }, {}, /hold no patch of 32/],
        [{ layer_type: "odd" }, {}, /layer_type: is "odd".*bottleneck, basic/, "resnet_toy"],
        [{ layer_type: "basic" }, {}, /layer\.0\.convolution\.weight.*shape/, "resnet_toy"],
        [{ downsample_in_bottleneck: true }, {}, /downsample_in_bottleneck: is true/, "resnet_toy"],
        [{ hidden_sizes: [24, 0] }, {}, /hidden_sizes: must be a list of sizes/, "resnet_toy"],
        [{ hidden_sizes: [24, 49] }, {}, /multiples of 4/, "resnet_toy"],
        [{ depths: [1] }, {}, /depths: lists 1 stages where there are 2/, "resnet_toy"],
        [{ depths: [1, 3] }, {}, /stages\.1\.layers\.2.* is missing/, "resnet_toy"],
        [{ hidden_act: "gelu" }, {}, /hidden_act: is "gelu"/, "resnet_toy"],
        [{}, { do_resize: false, do_center_crop: false }, /how large pictures are/, "resnet_toy"],
      ] as const
    ) {
      const error = await assertRejects(() => loadWith(change, prepared, name));
      assert(error instanceof TroodonError, String(error));
      assertMatch(error.message, message);
    }
    using model = await loadWith({});
    await Deno.remove(`${folder}/preprocessor_config.json`);
    using unprepared = await load(folder, { device: "reference" });
    assertEquals((await classifyImage(model, await picture())).length, 1);
    await assertRejects(
      async () => classifyImage(unprepared, await picture()),
      UnsupportedError,
      "preprocessor_config.json",
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** ReduceMean over places, then a matrix from 3 colours to 2 labels, as `logits` and, the means, as `pooler_output`. */
function tinyGraph(inputs: readonly Port[], outputs = ["logits", "pooler_output"]): Uint8Array {
  return writeOnnx({
    nodes: [
      {
        op: "ReduceMean",
        inputs: ["pixel_values"],
        outputs: ["pooler_output"],
        attributes: { axes: { ints: [2, 3] }, keepdims: { i: 0 } },
      },
      { op: "MatMul", inputs: ["pooler_output", "w"], outputs: ["logits"] },
    ],
    inputs,
    outputs: outputs.map((name): Port => [name, 1, ["batch", name === "logits" ? 2 : 3]]),
    initializers: [{ name: "w", type: 1, dims: [3, 2], floats: [1, 0, 0, 1, 0, 0] }],
  }, { opsets: { "": 13 } });
}

Deno.test("a graph with its config beside it classifies and embeds, and others say what they lack", async () => {
  const folder = await Deno.makeTempDir();
  const pictures = (batch: string | number): Port => ["pixel_values", 1, [batch, 3, 24, 24]];
  const open = async (bytes: Uint8Array) => {
    await Deno.writeFile(`${folder}/onnx/model.onnx`, bytes);
    return await loadImageGraph(`${folder}/onnx/model.onnx`, { device: "wasm", threads: 1 });
  };
  try {
    await Deno.mkdir(`${folder}/onnx`);
    const processor = "preprocessor_config.json";
    await Deno.copyFile(`${FOLDER}/vit_toy/${processor}`, `${folder}/${processor}`);
    const names = { id2label: { 0: "red", 1: "green" } };
    await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(names));
    const images = [await picture(), await picture("inputs/glyphs.webp"), await picture()];
    for (const batch of ["batch", 2]) {
      using graph = await open(tinyGraph([pictures(batch)]));
      const vectors = await embedImage(graph, images, { normalize: false });
      const { data } = preparePictures(images, graph.tower.processor!);
      vectors.forEach((vector, i) =>
        vector.forEach((mean, colour) => {
          const from = (3 * i + colour) * 576, plane = data.subarray(from, from + 576);
          assert(Math.abs(plane.reduce((sum, x) => sum + x, 0) / 576 - mean) < 1e-4);
        })
      );
      const all = await classifyImage(graph, images);
      all.forEach((labels, i) => {
        const logits = Object.fromEntries(labels.map(({ label, logit }) => [label, logit]));
        assertEquals(logits, { red: vectors[i]![0], green: vectors[i]![1] });
      });
      await assertRejects(() => matchImages(graph, { images, texts: ["a"] }), UnsupportedError);
      await assertRejects(() => embedImage(graph, pixels(1, 3, 8, 8)), RangeError, "[3, 24, 24]");
    }
    const more: Port = ["boxes", 7, ["batch", "length"]];
    for (
      const [bytes, message] of [
        [tinyGraph([pictures("batch"), more]), 'wants "boxes" beside pictures'],
        [tinyGraph([["pixel_values", 1, ["batch", 3, 24]]]), 'wants "pixel_values"'],
        [new Uint8Array(3), ""],
      ] as const
    ) {
      const error = await assertRejects(() => open(bytes));
      assert(error instanceof Error);
      assertStringIncludes(error.message, message);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** Vectors of pictures: the mean of each colour. */
const MEANS: GraphParts = {
  nodes: [{
    op: "ReduceMean",
    inputs: ["pixel_values"],
    outputs: ["image_embeds"],
    attributes: { axes: { ints: [2, 3] }, keepdims: { i: 0 } },
  }],
  inputs: [["pixel_values", 1, ["batch", 3, 24, 24]]],
  outputs: [["image_embeds", 1, ["batch", 3]]],
};

const TABLE = Float32Array.from({ length: 624 * 3 }, (_, i) => Math.sin(i));

/** Vectors of texts: the sum of what a table has for ids, where the mask says that they are of the text. */
const SUMS: GraphParts = {
  nodes: [
    { op: "Gather", inputs: ["table", "input_ids"], outputs: ["rows"] },
    { op: "Cast", inputs: ["attention_mask"], outputs: ["mask"], attributes: { to: { i: 1 } } },
    { op: "Unsqueeze", inputs: ["mask", "last"], outputs: ["column"] },
    { op: "Mul", inputs: ["rows", "column"], outputs: ["own"] },
    {
      op: "ReduceSum",
      inputs: ["own", "axis"],
      outputs: ["text_embeds"],
      attributes: { keepdims: { i: 0 } },
    },
  ],
  inputs: [["input_ids", 7, ["texts", "length"]], ["attention_mask", 7, ["texts", "length"]]],
  outputs: [["text_embeds", 1, ["texts", 3]]],
  initializers: [
    { name: "table", type: 1, dims: [624, 3], raw: floats(...TABLE) },
    { name: "axis", type: 7, dims: [1], raw: longs(1) },
    { name: "last", type: 7, dims: [1], raw: longs(2) },
  ],
};

/** Both, and their products times 7. */
const BOTH: GraphParts = {
  nodes: [
    ...MEANS.nodes,
    ...SUMS.nodes,
    { op: "Transpose", inputs: ["text_embeds"], outputs: ["turned"] },
    { op: "MatMul", inputs: ["image_embeds", "turned"], outputs: ["products"] },
    { op: "Mul", inputs: ["products", "seven"], outputs: ["logits_per_image"] },
  ],
  inputs: [...MEANS.inputs, ...SUMS.inputs],
  outputs: [["logits_per_image", 1, ["batch", "texts"]], ...MEANS.outputs, ...SUMS.outputs],
  initializers: [
    ...SUMS.initializers!,
    { name: "seven", type: 1, dims: [], raw: floats(7) },
  ],
};

Deno.test("CLIP in ONNX compares pictures with texts, as one file and as two", () =>
  withFolder(async (folder) => {
    for (const name of ["preprocessor_config.json", "vocab.json", "merges.txt"]) {
      Deno.copyFileSync(`${FOLDER}/clip_toy/${name}`, `${folder}/${name}`);
    }
    Deno.copyFileSync(
      `${FOLDER}/clip_toy/tokenizer_config.json`,
      `${folder}/tokenizer_config.json`,
    );
    Deno.mkdirSync(`${folder}/onnx`);
    const parts = { model: BOTH, vision_model_fp16: MEANS, text_model_fp16: SUMS };
    for (const [name, graph] of Object.entries(parts)) {
      Deno.writeFileSync(`${folder}/onnx/${name}.onnx`, writeOnnx(graph));
    }
    // Texts of control tokens count as such, as in transformers.
    const image = await picture(), texts = ["a cat", "a glass prism", "a <|endoftext|> cat"];
    using own = await open("clip_toy");
    const tokenizer = own.tokenizer;
    for (const [name, factor] of [["model", 7], ["vision_model_fp16", 100]] as const) {
      using graph = await loadImageGraph(`${folder}/onnx/${name}.onnx`, { device: "wasm" });
      const [mean] = await embedImage(graph, image, { normalize: false });
      const [matches] = await matchImages(graph, { images: image, texts });
      const length = (vector: readonly number[]) => Math.hypot(...vector);
      const expected = texts.map((text) => {
        const sum = [0, 1, 2].map((i) =>
          tokenizer.encode(text, { special: true })
            .reduce((total, id) => total + TABLE[3 * id + i]!, 0)
        );
        const product = sum.reduce((total, value, i) => total + value * mean![i]!, 0);
        const similarity = product / length(sum) / length([...mean!]);
        return { similarity, logit: name === "model" ? factor * product : factor * similarity };
      });
      matches!.forEach(({ similarity, logit }, i) => {
        assertAlmostEquals(similarity, expected[i]!.similarity, 1e-5);
        assertAlmostEquals(logit, expected[i]!.logit, 1e-3);
      });
      const [best] = await classifyImage(graph, image, { labels: texts, template: "{}", top: 1 });
      assertEquals(best![0]!.logit, Math.max(...matches!.map(({ logit }) => logit)));
    }
    Deno.removeSync(`${folder}/vocab.json`);
    using alone = await loadImageGraph(`${folder}/onnx/model.onnx`, { device: "wasm" });
    await assertRejects(() => matchImages(alone, { images: image, texts }), UnsupportedError);
  }));
