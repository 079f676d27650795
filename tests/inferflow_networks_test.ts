// Encoder-decoders and encoders in Inferflow's form: built as the shipped specs build them, and run by
// configurations from end to end, with the algorithm for texts that the form names.

import { assertAlmostEquals, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { fillMask, generate, load, UnsupportedError } from "../mod.ts";
import { troodon } from "./support/cli.ts";
import { checkpointPath } from "./support/seeded_weights.ts";
import { writeWordTokenizer } from "./support/toy_encoders.ts";

const EXACT = { device: "reference", precision: "exact", kvFormat: "F32" } as const;

type Names = Readonly<Record<string, string>>;

/** Weight and bias of some tensors. */
function pairs(names: Names): Names {
  return Object.fromEntries(
    ["weight", "bias"].flatMap((part) =>
      Object.entries(names).map(([from, to]) => [`${from}.${part}`, `${to}.${part}`])
    ),
  );
}

/** As the shipped configuration of M2M100 has it, but for the positions that the model was trained with. */
function sourceSpec(
  position: object = { position_embedding: "sinusoidal", pos_embedding_offset: 2 },
) {
  const half = (outer: string, inner: string) => ({
    [`${outer}.layers.{i}.final_layer_norm`]: `${inner}.{i}.feed_forward.pre_norm`,
    [`${outer}.layers.{i}.fc1`]: `${inner}.{i}.feed_forward.w1`,
    [`${outer}.layers.{i}.fc2`]: `${inner}.{i}.feed_forward.w2`,
    [`${outer}.layer_norm`]: `${inner}.output_norm`,
  });
  return {
    config_file: "config.json",
    model_files: ["model.safetensors"],
    model_file_format: "safetensors",
    network_structure: {
      type: "transformer.encoder_decoder",
      normalization_function: "std",
      activation_function: "relu",
      ...position,
      qk_column_order: 2,
      qkv_format: 1,
      tensor_name_prefix: "model.",
      tensor_name_mapping: pairs({ ...half("encoder", "enc"), ...half("decoder", "dec") }),
    },
  };
}

async function sourceLogits(spec?: unknown): Promise<number[]> {
  using model = await load(checkpointPath("m2m100"), { ...EXACT, ...spec ? { spec } : {} });
  assertEquals(model.info.warnings, []);
  using session = model.createSession();
  await session.encode([13, 45, 91, 26, 2]);
  await session.sync([2, 13, 45]);
  return [...session.logits()];
}

Deno.test("Inferflow's form builds an encoder-decoder with the logits of the shipped spec", async () => {
  const expected = await sourceLogits();
  (await sourceLogits(sourceSpec())).forEach((value, i) =>
    assertAlmostEquals(value, expected[i]!, 1e-6)
  );
});

Deno.test("positions of another kind, and unscaled rows, are what the form says", async () => {
  const right = await sourceLogits();
  const distance = (other: number[]) =>
    Math.max(...other.map((value, i) => Math.abs(value - right[i]!)));
  const variants: readonly object[] = [
    { position_embedding: "sinusoidal2", pos_embedding_offset: 2 },
    { position_embedding: "sinusoidal" },
    {
      position_embedding: "sinusoidal",
      pos_embedding_offset: 2,
      linear_norm_before_sinusoidal: false,
    },
  ];
  for (const variant of variants) {
    const off = distance(await sourceLogits(sourceSpec(variant)));
    assertEquals(off > 1e-3, true, `${JSON.stringify(variant)} is ${off} away`);
  }
});

/** A folder with a fixture, a tokenizer of words, and a configuration with one query. */
async function withConfig(
  fixture: string,
  { spec, query, lines = "" }: { spec: unknown; query: string; lines?: string },
  run: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = Deno.makeTempDirSync();
  try {
    Deno.mkdirSync(`${folder}/model`);
    for (const { name } of Deno.readDirSync(checkpointPath(fixture))) {
      Deno.copyFileSync(`${checkpointPath(fixture)}/${name}`, `${folder}/model/${name}`);
    }
    writeWordTokenizer(`${folder}/model`, fixture === "m2m100");
    Deno.writeTextFileSync(`${folder}/spec.json`, `# a comment\n${JSON.stringify(spec)}`);
    Deno.writeTextFileSync(
      `${folder}/engine.ini`,
      `[transformer_engine]\nmodels = m\n[model.m]\nmodel_dir = \${config_dir}model\n` +
        `model_specification_file = \${config_dir}spec.json\n` +
        `device_kv_cache_data_type = F32\nmax_context_len = 48\ndecoding_strategy = sample.greedy\n` +
        `${lines}\n[webgpu]\ndevice = reference\nprecision = exact\n`,
    );
    Deno.writeTextFileSync(
      `${folder}/run.ini`,
      "[main]\ninference_engine_config = ${config_dir}engine.ini\nquery_list = q\ntemperature = 0\n" +
        `[query_list.q]\nquery_count = 1\nquery1 = ${query}\n`,
    );
    await run(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("troodon --config translates with an encoder-decoder in Inferflow's form", () =>
  withConfig("m2m100", {
    spec: sourceSpec(),
    query: "w45 w91 w26",
    lines:
      "encoder_input_template = {__w5__}{query}{[SEP]}\ndecoder_input_template = {[SEP]}{__w6__}",
  }, async (folder) => {
    const { code, out, err } = await troodon(["--config", `${folder}/run.ini`, "--json"]);
    assertEquals(code, 0, err);
    using model = await load(`${folder}/model`, { ...EXACT, contextLength: 48 });
    using session = model.createSession();
    await session.encode([105, 45, 91, 26, 2]);
    await session.sync([2, 106]);
    const ids: number[] = [];
    while (ids.length < 12) {
      ids.push(session.logits().indexOf(Math.max(...session.logits())));
      await session.eval([ids.at(-1)!]);
    }
    assertEquals(JSON.parse(out).ids.slice(0, 12), ids);
  }));

/** As the shipped configuration of BERT has it, with the exact GELU. */
function encoderSpec(top: object = {}) {
  const layer = (from: string, to: string) => ({ [`encoder.layer.{i}.${from}`]: `enc.{i}.${to}` });
  return {
    model_files: ["model.safetensors"],
    model_file_format: "safetensors",
    ...top,
    network_structure: {
      type: "transformer.encoder_only",
      normalization_function: "std",
      activation_function: "gelu_exact",
      position_embedding: "empty",
      tensor_name_prefix: "bert.",
      tensor_name_mapping: {
        "embeddings.word_embeddings.weight": "enc.token_embeddings.weight",
        "embeddings.position_embeddings.weight": "enc.pos_embeddings.weight",
        "embeddings.token_type_embeddings.weight": "enc.token_type_embeddings.weight",
        ...pairs({
          "embeddings.LayerNorm": "enc.input_norm",
          ...layer("attention.self.query", "self_attn.wq"),
          ...layer("attention.self.key", "self_attn.wk"),
          ...layer("attention.self.value", "self_attn.wv"),
          ...layer("attention.output.dense", "self_attn.wo"),
          ...layer("attention.output.LayerNorm", "self_attn.post_norm"),
          ...layer("intermediate.dense", "feed_forward.w1"),
          ...layer("output.dense", "feed_forward.w2"),
          ...layer("output.LayerNorm", "feed_forward.post_norm"),
          "cls.predictions.transform.dense": "output_transform",
          "cls.predictions.transform.LayerNorm": "output_transform.post_norm",
        }),
        "cls.predictions.bias": "enc.output.bias",
      },
    },
  };
}

Deno.test("troodon --config fills gaps with an encoder in Inferflow's form", () =>
  withConfig("bert", { spec: encoderSpec(), query: "w5 [MASK] w7" }, async (folder) => {
    const { code, out, err } = await troodon(["--config", `${folder}/run.ini`, "--json"]);
    assertEquals(code, 0, err);
    using model = await load(`${folder}/model`, { ...EXACT, contextLength: 48 });
    const [expected] = await fillMask(model, "w5 [MASK] w7");
    const [filled] = JSON.parse(out).masks;
    const rounded = (list: readonly { id: number; probability: number }[]) =>
      list.map(({ id, probability }) => [id, probability.toFixed(5)]);
    assertEquals(rounded(filled), rounded(expected!));
  }));

Deno.test("texts are cut by the algorithm that the form names, or it is refused", () =>
  withConfig("bert", { spec: encoderSpec(), query: "w5" }, async (folder) => {
    const open = (algorithm: string) =>
      load(`${folder}/model`, {
        ...EXACT,
        spec: encoderSpec({ tokenization_algorithm: algorithm }),
      });
    for (const algorithm of ["", "std"]) {
      using model = await open(algorithm);
      assertEquals(model.tokenizer.algorithm, "word_piece");
      assertEquals(model.tokenizer.encode("w5w7"), [1, 3, 2]);
    }
    for (const algorithm of ["fmm", "fmm2"]) {
      using model = await open(algorithm);
      assertEquals(model.tokenizer.algorithm, "maximum_matching");
      assertEquals(model.tokenizer.encode("w5w7"), [1, 5, 7, 2]);
    }
    for (const algorithm of ["bpe", "ulm"]) {
      const error = await assertRejects(() => open(algorithm), UnsupportedError);
      assertStringIncludes(
        (error as Error).message,
        `tokenization_algorithm: is "${algorithm}", and the model's tokenizer is of the kind word_piece`,
      );
    }
  }));

Deno.test("an algorithm that the files are of changes nothing", async () => {
  const path = new URL("./fixtures/models/llama_formats/", import.meta.url).pathname;
  const spec = {
    model_file_format: "gguf",
    tokenization_algorithm: "bpe",
    network_structure: { type: "llama", qk_column_order: 1, tensor_name_prefix: "blk." },
  };
  using plain = await load(`${path}llama.Q8_0.gguf`, EXACT);
  using model = await load(`${path}llama.Q8_0.gguf`, { ...EXACT, spec });
  assertEquals(model.tokenizer.encode("some words"), plain.tokenizer.encode("some words"));
  const options = { maxTokens: 4, temperature: 0, ignoreEos: true };
  assertEquals(
    (await generate(model, "a", options).result).ids,
    (await generate(plain, "a", options).result).ids,
  );
});
