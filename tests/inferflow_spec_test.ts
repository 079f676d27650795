// Descriptions in Inferflow's form, written for the tiny fixtures: models that are built by them give the logits of
// the built-in specs.

import { assertAlmostEquals, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { load } from "../engine/models/load.ts";
import { parseSpecText } from "../engine/models/spec_file.ts";
import { fillMask } from "../engine/pipelines/fill_mask.ts";
import { fixturePath } from "./support/fixtures.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { checkpointPath } from "./support/seeded_weights.ts";

const IDS = [1, 5, 9, 60, 17, 33];
const EXACT = { device: "reference", precision: "exact" } as const;

type Json = Record<string, unknown>;

function specOf(network: Json, top: Json = {}): unknown {
  return {
    COMMENTS: ["a comment"],
    config_file: "config.json",
    model_files: ["model.safetensors"],
    model_file_format: "safetensors",
    tokenization_algorithm: "bpe",
    ...top,
    network_structure: network,
  };
}

async function logits(path: string, spec?: unknown): Promise<Float32Array> {
  using model = await load(path, { ...EXACT, ...spec !== undefined && { spec } });
  using session = model.createSession();
  await session.sync(IDS);
  return session.logits().slice();
}

async function assertSame(path: string, spec: unknown): Promise<void> {
  const expected = await logits(path), actual = await logits(path, spec);
  actual.forEach((value, i) => assertAlmostEquals(value, expected[i]!, 1e-6));
}

const LLAMA = fixturePath("models/llama");
const LLAMA_NETWORK = {
  type: "transformer.llama",
  qk_column_order: 2,
  tensor_name_prefix: "model.",
};

const CASES: Readonly<Record<string, { path: string; spec: unknown }>> = {
  "llama by its built-in names": { path: LLAMA, spec: specOf(LLAMA_NETWORK) },
  "llama in full, as a plain decoder": {
    path: LLAMA,
    spec: specOf({
      type: "transformer.decoder_only",
      normalization_function: "rms",
      activation_function: "silu",
      position_embedding: "rope",
      rope_theta: 10000,
      qk_column_order: 2,
      kq_scale: 10,
      tensor_name_prefix: "model.",
      tensor_name_mapping: { "norm.weight": "dec.output_norm.weight" },
    }, { vocab_size: 128 }),
  },
  "llama in GGUF": {
    path: TINY_LLAMA,
    spec: specOf(
      { type: "llama", qk_column_order: 1, tensor_name_prefix: "blk." },
      { config_file: "", model_file_format: "gguf" },
    ),
  },
  "bloom": {
    path: checkpointPath("bloom"),
    spec: specOf({ type: "transformer.bloom", qkv_format: 0, tensor_name_prefix: "transformer." }),
  },
  "chatglm2, with fused and interleaved atoms": {
    path: fixturePath("models/chatglm2"),
    spec: specOf({
      type: "transformer.decoder_only",
      normalization_function: "rms",
      activation_function: "glu_silu",
      position_embedding: "rope",
      partial_rotary_factor: 0.5,
      qk_column_order: 1,
      qkv_format: 1,
      tensor_name_prefix: "transformer.",
      tensor_name_mapping: {
        "embedding.word_embeddings.weight": "dec.token_embeddings.weight",
        "encoder.layers.{i}.input_layernorm.weight": "dec.{i}.self_attn.pre_norm.weight",
        "encoder.layers.{i}.self_attention.query_key_value.weight": "dec.{i}.self_attn.qkv.weight",
        "encoder.layers.{i}.self_attention.query_key_value.bias": "dec.{i}.self_attn.qkv.bias",
        "encoder.layers.{i}.self_attention.dense.weight": "dec.{i}.self_attn.wo.weight",
        "encoder.layers.{i}.post_attention_layernorm.weight":
          "dec.{i}.feed_forward.pre_norm.weight",
        "encoder.layers.{i}.mlp.dense_h_to_4h.weight": "dec.{i}.feed_forward.w1.weight",
        "encoder.layers.{i}.mlp.dense_4h_to_h.weight": "dec.{i}.feed_forward.w2.weight",
        "encoder.final_layernorm.weight": "dec.output_norm.weight",
        "output_layer.weight": "output.weight",
      },
    }),
  },
  "phi, with parallel blocks and the bias of the head": {
    path: fixturePath("models/phi"),
    spec: specOf({
      type: "transformer.decoder_only",
      normalization_function: "std",
      activation_function: "gelu",
      position_embedding: "rope",
      is_parallel_attn: true,
      qk_column_order: 2,
      kq_scale: 10,
      tensor_name_prefix: "model.",
      tensor_name_mapping: {
        "layers.{i}.self_attn.dense.weight": "dec.{i}.self_attn.wo.weight",
        "layers.{i}.self_attn.dense.bias": "dec.{i}.self_attn.wo.bias",
        "layers.{i}.mlp.fc1.weight": "dec.{i}.feed_forward.w1.weight",
        "layers.{i}.mlp.fc1.bias": "dec.{i}.feed_forward.w1.bias",
        "layers.{i}.mlp.fc2.weight": "dec.{i}.feed_forward.w2.weight",
        "layers.{i}.mlp.fc2.bias": "dec.{i}.feed_forward.w2.bias",
        "final_layernorm.weight": "dec.output_norm.weight",
        "final_layernorm.bias": "dec.output_norm.bias",
      },
    }),
  },
  "falcon 40b, with the exact GELU and two norms side by side": {
    path: checkpointPath("falcon_40b"),
    spec: specOf({
      type: "transformer.decoder_only",
      normalization_function: "std",
      activation_function: "gelu_exact",
      position_embedding: "rope",
      mlp_attn_share_input: true,
      qk_column_order: 2,
      qkv_format: 0,
      tensor_name_prefix: "transformer.",
      tensor_name_mapping: {
        "word_embeddings.weight": "dec.token_embeddings.weight",
        "h.{i}.ln_attn.weight": "dec.{i}.self_attn.pre_norm.weight",
        "h.{i}.ln_attn.bias": "dec.{i}.self_attn.pre_norm.bias",
        "h.{i}.self_attention.query_key_value.weight": "dec.{i}.self_attn.qkv.weight",
        "h.{i}.self_attention.dense.weight": "dec.{i}.self_attn.wo.weight",
        "h.{i}.ln_mlp.weight": "dec.{i}.feed_forward.pre_norm.weight",
        "h.{i}.ln_mlp.bias": "dec.{i}.feed_forward.pre_norm.bias",
        "h.{i}.mlp.dense_h_to_4h.weight": "dec.{i}.feed_forward.w1.weight",
        "h.{i}.mlp.dense_4h_to_h.weight": "dec.{i}.feed_forward.w2.weight",
        "ln_f.weight": "dec.output_norm.weight",
        "ln_f.bias": "dec.output_norm.bias",
      },
    }),
  },
  "falcon 7b, with one head of keys and values": {
    path: checkpointPath("falcon_7b"),
    spec: specOf({
      type: "transformer.decoder_only",
      normalization_function: "std",
      activation_function: "gelu_exact",
      position_embedding: "rope",
      is_parallel_attn: true,
      qk_column_order: 2,
      qkv_format: 0,
      tensor_name_prefix: "transformer.",
      tensor_name_mapping: {
        "word_embeddings.weight": "dec.token_embeddings.weight",
        "h.{i}.input_layernorm.weight": "dec.{i}.self_attn.pre_norm.weight",
        "h.{i}.input_layernorm.bias": "dec.{i}.self_attn.pre_norm.bias",
        "h.{i}.self_attention.query_key_value.weight": "dec.{i}.self_attn.qkv.weight",
        "h.{i}.self_attention.query_key_value.bias": "dec.{i}.self_attn.qkv.bias",
        "h.{i}.self_attention.dense.weight": "dec.{i}.self_attn.wo.weight",
        "h.{i}.mlp.dense_h_to_4h.weight": "dec.{i}.feed_forward.w1.weight",
        "h.{i}.mlp.dense_4h_to_h.weight": "dec.{i}.feed_forward.w2.weight",
        "ln_f.weight": "dec.output_norm.weight",
        "ln_f.bias": "dec.output_norm.bias",
      },
    }),
  },
  "llama2.c": {
    path: fixturePath("models/llama_formats/llama2c_v2_q80.bin"),
    spec: specOf(
      { type: "llama", qk_column_order: 0 },
      { config_file: "", model_file_format: "llama2.c" },
    ),
  },
  "opt 350m, with norms behind the sums, learnt positions and projections": {
    path: fixturePath("models/opt_350m"),
    spec: specOf({
      type: "transformer.decoder_only",
      normalization_function: "std",
      activation_function: "relu",
      position_embedding: "empty",
      pos_embedding_offset: 2,
      tensor_name_prefix: "model.decoder.",
      tensor_name_mapping: {
        "embed_positions.weight": "dec.pos_embeddings.weight",
        "layers.{i}.self_attn_layer_norm.weight": "dec.{i}.self_attn.post_norm.weight",
        "layers.{i}.self_attn_layer_norm.bias": "dec.{i}.self_attn.post_norm.bias",
        "layers.{i}.final_layer_norm.weight": "dec.{i}.feed_forward.post_norm.weight",
        "layers.{i}.final_layer_norm.bias": "dec.{i}.feed_forward.post_norm.bias",
        "layers.{i}.fc1.weight": "dec.{i}.feed_forward.w1.weight",
        "layers.{i}.fc1.bias": "dec.{i}.feed_forward.w1.bias",
        "layers.{i}.fc2.weight": "dec.{i}.feed_forward.w2.weight",
        "layers.{i}.fc2.bias": "dec.{i}.feed_forward.w2.bias",
        "project_in.weight": "input_transform.weight",
        "project_out.weight": "output_transform.weight",
      },
    }),
  },
};

for (const [name, { path, spec }] of Object.entries(CASES)) {
  Deno.test(`Inferflow's form builds ${name}`, () => assertSame(path, spec));
}

Deno.test("Inferflow's form builds an encoder", async () => {
  const norms = ["weight", "bias"];
  const layer = (source: string, target: string) =>
    norms.map((part) => [`encoder.layer.{i}.${source}.${part}`, `enc.{i}.${target}.${part}`]);
  const spec = specOf({
    type: "transformer.encoder_only",
    normalization_function: "std",
    activation_function: "gelu_exact",
    position_embedding: "empty",
    tensor_name_prefix: "bert.",
    tensor_name_mapping: Object.fromEntries([
      ["embeddings.word_embeddings.weight", "enc.token_embeddings.weight"],
      ["embeddings.position_embeddings.weight", "enc.pos_embeddings.weight"],
      ["embeddings.token_type_embeddings.weight", "enc.token_type_embeddings.weight"],
      ...norms.map((part) => [`embeddings.LayerNorm.${part}`, `enc.input_norm.${part}`]),
      ...layer("attention.self.query", "self_attn.wq"),
      ...layer("attention.self.key", "self_attn.wk"),
      ...layer("attention.self.value", "self_attn.wv"),
      ...layer("attention.output.dense", "self_attn.wo"),
      ...layer("attention.output.LayerNorm", "self_attn.post_norm"),
      ...layer("intermediate.dense", "feed_forward.w1"),
      ...layer("output.dense", "feed_forward.w2"),
      ...layer("output.LayerNorm", "feed_forward.post_norm"),
      ...norms.map((
        part,
      ) => [`cls.predictions.transform.dense.${part}`, `output_transform.${part}`]),
      ...norms.map((part) => [
        `cls.predictions.transform.LayerNorm.${part}`,
        `output_transform.post_norm.${part}`,
      ]),
      ["cls.predictions.bias", "enc.output.bias"],
    ]),
  });
  const path = fixturePath("models/bert");
  const candidates = async (given?: unknown) => {
    using model = await load(path, { ...EXACT, ...given !== undefined && { spec: given } });
    assertEquals(model.info.warnings, []);
    return await fillMask(model, [2, 9, 60, 17, 33], { maskId: 17, top: 128 });
  };
  assertEquals(await candidates(spec), await candidates());
});

Deno.test("a llama by Inferflow's form gives the tokens of transformers", async () => {
  const expected = JSON.parse(Deno.readTextFileSync(`${LLAMA}/expected.json`));
  const { input_ids: prompt, greedy_ids: greedy } = expected.cases[0];
  for (const device of ["reference", "wasm"] as const) {
    using model = await load(LLAMA, { device, threads: 1, spec: specOf(LLAMA_NETWORK) });
    using session = model.createSession();
    await session.sync(prompt);
    const ids: number[] = [];
    while (ids.length < greedy.length) {
      const logits = session.logits();
      ids.push(logits.indexOf(Math.max(...logits)));
      await session.eval([ids.at(-1)!]);
    }
    assertEquals(ids, greedy, device);
  }
});

Deno.test("keys that are not known are named in one warning, comments in front are skipped", async () => {
  const text = `# one\n\n# two\n${
    JSON.stringify(specOf({ ...LLAMA_NETWORK, colour: 1 }, { shape: 2 }))
  }`;
  using model = await load(LLAMA, { ...EXACT, spec: parseSpecText(text, "a.json") });
  assertEquals(model.info.warnings.length, 1);
  assertStringIncludes(model.info.warnings[0]!, "shape, network_structure.colour");
});

const WRONG: readonly [network: Json, top: Json, kind: typeof FormatError, message: string][] = [
  [
    { tensor_name_mapping: { "none.weight": "output.weight" } },
    {},
    FormatError,
    "neither model.none",
  ],
  [
    { tensor_name_mapping: { "norm.weight": "dec.nonsense.weight" } },
    {},
    FormatError,
    "no standard name",
  ],
  [{ is_parallel_attn: true, mlp_attn_share_input: true }, {}, FormatError, "exclude each other"],
  [{ normalization_function: "std", attn_pre_norm_base: 1 }, {}, UnsupportedError, "bases"],
  [{ qk_column_order: 3 }, {}, FormatError, "qk_column_order"],
  [{ activation_function: "elu" }, {}, UnsupportedError, '"elu"'],
  [{ activation_function: "tanh" }, {}, FormatError, '"glu_silu"'],
  [{ attn_out_scale: 0.5 }, {}, UnsupportedError, "ffn_out_scale"],
  [{ type: "general" }, {}, UnsupportedError, "which halves there are"],
  [{ type: "nonsense" }, {}, FormatError, "network_structure.type"],
  [{}, { vocab_size: 1000 }, FormatError, "has 128 rows"],
  [{}, { model_file_format: "gguf" }, FormatError, "is safetensors"],
  [{}, { token_remap_file: "a" }, UnsupportedError, "token_remap_file"],
];

Deno.test("what contradicts itself or the file, and what is not built, is named by its key", async () => {
  for (const [network, top, kind, message] of WRONG) {
    const spec = specOf({ ...LLAMA_NETWORK, ...network }, top);
    const error = await assertRejects(() => load(LLAMA, { ...EXACT, spec }), kind);
    assertStringIncludes((error as Error).message, message.replace("bases", "attn_pre_norm_base"));
  }
});
