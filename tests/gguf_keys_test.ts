// No key of a GGUF file's architecture is read past: each that llama.cpp's converters write (gguf-py's constants.py) is
// set to an unusual value, and then the graph is another, or the key is refused or told by name, or names.json or the
// spec lists it as harmless and says why.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { UnsupportedError } from "../engine/errors.ts";
import { memorySource } from "../engine/io.ts";
import type { MetadataValue } from "../engine/formats/source.ts";
import { openModel } from "../engine/models/open_model.ts";
import { chooseSpec } from "../engine/models/specs/mod.ts";
import { unknownKeys } from "../engine/models/unknown_keys.ts";
import { readFixture } from "./support/fixtures.ts";
import { GGUF_RULES } from "./support/gguf_rules.ts";
import { modelOf, outcomeOf } from "./support/key_outcomes.ts";
import { checkpointPath } from "./support/seeded_weights.ts";
import { toGguf } from "./support/to_gguf.ts";

const WRITTEN = [
  ...["vocab_size", "context_length", "embedding_length", "embedding_length_out", "block_count"],
  ...["features_length", "leading_dense_block_count", "feed_forward_length"],
  ...["expert_feed_forward_length", "expert_shared_feed_forward_length"],
  ...["expert_chunk_feed_forward_length", "use_parallel_residual", "tensor_data_layout"],
  ...["count", "used_count", "shared_count", "group_count", "group_used_count", "weights_scale"]
    .map((key) => `expert_${key}`),
  ...["expert_weights_norm", "expert_gating_func", "expert_group_scale", "experts_per_group"],
  ...["moe_every_n_layers", "moe_latent_size", "nextn_predict_layers", "n_deepstack_layers"],
  ...["pooling_type", "logit_scale", "decoder_start_token_id", "decoder_block_count"],
  ...["attn_logit_softcapping", "router_logit_softcapping", "final_logit_softcapping"],
  ...["swin_norm", "rescale_every_n_layers", "time_mix_extra_dim", "time_decay_extra_dim"],
  ...["residual_scale", "embedding_scale", "token_shift_count", "interleave_moe_layer_step"],
  ...["full_attention_interval", "activation_sparsity_scale", "altup.active_idx"],
  ...["altup.num_inputs", "embedding_length_per_layer_input", "swiglu_clamp_exp"],
  ...["swiglu_clamp_shexp", "dense_2_feat_in", "dense_2_feat_out"],
  ...[
    ...["head_count", "head_count_kv", "max_alibi_bias", "clamp_kqv", "key_length"],
    ...["value_length", "layer_norm_epsilon", "layer_norm_rms_epsilon", "group_norm_epsilon"],
    ...["group_norm_groups", "causal", "q_lora_rank", "kv_lora_rank", "decay_lora_rank"],
    ...["iclr_lora_rank", "value_residual_mix_lora_rank", "gate_lora_rank"],
    ...["relative_buckets_count", "sliding_window", "scale", "output_scale"],
    ...["temperature_length", "temperature_scale", "key_length_mla", "value_length_mla"],
    ...["key_length_swa", "value_length_swa", "shared_kv_layers", "sliding_window_pattern"],
    ...["indexer.head_count", "indexer.key_length", "indexer.top_k"],
  ].map((key) => `attention.${key}`),
  // Fields of rope.scaling are numbers of a rule (rope_fields_test.ts).
  ...["dimension_count", "dimension_count_swa", "dimension_sections", "freq_base"]
    .map((key) => `rope.${key}`),
  ...["rope.freq_base_swa", "rope.scale_linear"],
];
/** The fixture turns one pair of channels of a head, which has the frequency 1 whatever the base. */
const WITHOUT_EFFECT = ["stablelm.rope.freq_base"];
const OTHER = ["ssm.conv_kernel", "wkv.head_size", "classifier.output_labels", "brand_new"];

function configOf(folder: string): Record<string, MetadataValue> | undefined {
  for (const name of ["config.v4.json", "config.json"]) {
    try {
      return JSON.parse(readFixture(`models/${folder}/${name}`));
    } catch {
      continue;
    }
  }
}

/** One folder of each architecture. */
const FOLDERS = new Map(
  Object.entries(GGUF_RULES).flatMap(([folder, rules]) =>
    rules.filter(({ spec }) => spec === undefined && configOf(folder)).map((rule) =>
      [rule.arch, { folder, rule }] as const
    )
  ),
);

async function openArchitecture(arch: string) {
  const { folder, rule } = FOLDERS.get(arch)!;
  const bytes = await toGguf(checkpointPath(folder), configOf(folder)!, rule);
  return await openModel(memorySource("toy.gguf", bytes));
}

for (const arch of FOLDERS.keys()) {
  Deno.test(`${arch}: no key of the architecture is read past`, async () => {
    const file = await openArchitecture(arch);
    const { resolved, architecture } = chooseSpec(file);
    const base = await modelOf(file);
    const past: string[] = [];
    const keys = [...WRITTEN, ...OTHER].map((name) => `${arch}.${name}`);
    const absent = keys.filter((key) => !file.metadata.has(key));
    const all = new Map([...file.metadata, ...absent.map((key) => [key, 3] as const)]);
    const told = unknownKeys({ ...file, metadata: all }, { spec: resolved, architecture });
    for (const key of keys.filter((key) => !told.includes(key))) {
      if (await outcomeOf(file, key, base) === "read past") past.push(key);
    }
    assert(told.includes(`${arch}.brand_new`));
    assertEquals(past.filter((key) => !WITHOUT_EFFECT.includes(key)), []);
  });
}

Deno.test("a rule of rotations beside stored lists of divisors is refused by name", async () => {
  const file = await openArchitecture("phi3");
  assert(file.tensors.has("rope_factors_long.weight"));
  for (
    const [field, type, factor] of [["type", "yarn", 1], ["type", "linear", 1], [
      "factor",
      "longrope",
      2,
    ]] as const
  ) {
    const rule = [["type", type], ["factor", factor]] as const;
    const keys = rule.map(([name, value]) => [`phi3.rope.scaling.${name}`, value] as const);
    await assertRejects(
      () => modelOf({ ...file, metadata: new Map([...file.metadata, ...keys]) }),
      UnsupportedError,
      `toy.gguf, rotary scaling, ${field}: is`,
    );
  }
});
