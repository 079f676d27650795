// How llama.cpp's converters write each family: names, keys and changes of tensors, told from their source and not
// from our specs. Where they know a number by the model's size and not by a key, a rule says it in `spec`, since
// the fixtures are too small to be recognised.

import {
  baichuan,
  cohere,
  deepseek2,
  falcon,
  fuseAttention,
  fuseExperts,
  gemma,
  gptOss,
  llama3Factors,
  llamaLike,
  mixtral,
  olmoe,
  phi,
  phi3,
  stablelm,
} from "./gguf_families.ts";
import {
  bloomLike,
  common,
  type Config,
  count,
  LAYER,
  LLAMA_NAMES,
  one,
  P,
  parts,
  real,
  together,
} from "./gguf_names.ts";
import type { Typed } from "./write_gguf.ts";
import { type Change, type GgufRule, pairsTogether, transpose, ungroup } from "./to_gguf.ts";

/** Rules by folder of tests/fixtures/models; several where writers differ. */
export const GGUF_RULES: Readonly<Record<string, readonly GgufRule[]>> = {
  baichuan2_13b: [baichuan({
    // llama.cpp tells the one with slopes by its 40 layers.
    spec: {
      cases: [],
      attention: { ropeStyle: null, kinds: { full: { theta: null, alibi: "scaled" } } },
    },
  })],
  baichuan2_7b: [baichuan()],
  bloom: [{
    arch: "bloom",
    metadata: (config) => common(config, "layer"),
    names: bloomLike("transformer\\."),
    changes: ({ n_head, hidden_size }) => [
      [/attn_qkv/, one((tensor) => ungroup(tensor, n_head!, 1, hidden_size! / n_head!))],
    ],
  }],
  chatglm2: [{
    arch: "chatglm",
    metadata: (config) => ({
      ...common(config, "rms", config.multi_query_group_num),
      "rope.dimension_count": count((config.kv_channels as number) / 2),
      "rope.freq_base": real(10000),
    }),
    names: [
      [P("transformer\\.embedding\\.word_embeddings\\.weight"), "token_embd.weight"],
      [P("transformer\\.encoder\\.final_layernorm\\.weight"), "output_norm.weight"],
      [P("transformer\\.output_layer\\.weight"), "output.weight"],
      ...[
        ["input_layernorm", "attn_norm"],
        ["post_attention_layernorm", "ffn_norm"],
        ["self_attention\\.query_key_value", "attn_qkv"],
        ["self_attention\\.dense", "attn_output"],
        ["mlp\\.dense_h_to_4h", "ffn_up"],
        ["mlp\\.dense_4h_to_h", "ffn_down"],
      ].map(([from, to]) =>
        [
          P(`transformer\\.encoder\\.layers\\.(\\d+)\\.${from}\\.(\\w+)`),
          `blk.$1.${to}.$2`,
        ] as const
      ),
    ],
  }],
  cohere: [cohere],
  cohere_qk_norm: [cohere],
  cohere2: [llamaLike("cohere2", {
    metadata: (config) => ({
      ...common(config, "layer"),
      logit_scale: real(config.logit_scale),
      "attention.sliding_window": count(config.sliding_window),
      "rope.dimension_count": count(config.head_dim),
      "rope.scaling.type": ["string", "none"],
    }),
  })],
  dots1: [llamaLike("dots1", {
    metadata: (config) => ({
      ...common(config, "rms"),
      leading_dense_block_count: count(config.first_k_dense_replace),
      expert_count: count(config.n_routed_experts),
      expert_used_count: count(config.num_experts_per_tok),
      expert_shared_count: count(config.n_shared_experts),
      expert_feed_forward_length: count(config.moe_intermediate_size),
      expert_weights_scale: real(config.routed_scaling_factor),
      expert_weights_norm: ["bool", config.norm_topk_prob],
      expert_gating_func: count(2),
    }),
    names: [
      [P(`${LAYER}mlp\\.gate\\.e_score_correction_bias`), "blk.$1.exp_probs_b.bias"],
      ...LLAMA_NAMES,
    ],
    // Its window is not written.
    spec: { defaults: { window: 8, windowStart: 2 } },
  })],
  gpt_bigcode: [{
    arch: "starcoder",
    metadata: (config) => common(config, "layer", 1),
    names: [
      [P("transformer\\.wte\\.weight"), "token_embd.weight"],
      [P("transformer\\.wpe\\.weight"), "position_embd.weight"],
      [P("transformer\\.ln_f\\.(\\w+)"), "output_norm.$1"],
      ...[
        ["ln_1", "attn_norm"],
        ["ln_2", "ffn_norm"],
        ["attn\\.c_attn", "attn_qkv"],
        ["attn\\.c_proj", "attn_output"],
        ["mlp\\.c_fc", "ffn_up"],
        ["mlp\\.c_proj", "ffn_down"],
      ].map(([from, to]) =>
        [P(`transformer\\.h\\.(\\d+)\\.${from}\\.(\\w+)`), `blk.$1.${to}.$2`] as const
      ),
    ],
  }],
  granitemoe: [llamaLike("granitemoe", {
    metadata: (config) => ({
      ...common(config, "rms"),
      "attention.scale": real(config.attention_multiplier),
      embedding_scale: real(config.embedding_multiplier),
      residual_scale: real(config.residual_multiplier),
      logit_scale: real(config.logits_scaling),
      expert_count: count(config.num_local_experts),
      expert_used_count: count(config.num_experts_per_tok),
    }),
    names: [
      [P(`${LAYER}block_sparse_moe\\.router\\.layer\\.weight`), "blk.$1.ffn_gate_inp.weight"],
      [P(`${LAYER}block_sparse_moe\\.input_linear\\.weight`), "blk.$1.ffn_gate_up_exps.weight"],
      [P(`${LAYER}block_sparse_moe\\.output_linear\\.weight`), "blk.$1.ffn_down_exps.weight"],
      ...LLAMA_NAMES,
    ],
    changes: (config) => [...together(config), [/ffn_gate_up_exps/, halves]],
  })],
  ernie4_5: [llamaLike("ernie4_5")],
  exaone4: [exaone4((config) => ["array", isSliding(config), "bool"]), {
    ...exaone4(() => ["u32", 4]),
    title: "a period of layers",
  }],
  exaone4_full: [{ ...exaone4(), extra: llama3Factors }],
  glm4_moe: [llamaLike("glm4moe", {
    metadata: (config) => ({
      ...common(config, "rms"),
      block_count: count((config.num_hidden_layers as number) + 1),
      nextn_predict_layers: count(1),
      "rope.dimension_count": count((config.head_dim as number) / 2),
      leading_dense_block_count: count(config.first_k_dense_replace),
      expert_count: count(config.n_routed_experts),
      expert_used_count: count(config.num_experts_per_tok),
      expert_shared_count: count(config.n_shared_experts),
      expert_feed_forward_length: count(config.moe_intermediate_size),
      expert_weights_scale: real(config.routed_scaling_factor),
      expert_weights_norm: ["bool", config.norm_topk_prob],
    }),
    names: [
      [P(`${LAYER}post_attention_layernorm\\.weight`), "blk.$1.post_attention_norm.weight"],
      [P(`${LAYER}mlp\\.gate\\.e_score_correction_bias`), "blk.$1.exp_probs_b.bias"],
      ...LLAMA_NAMES,
    ],
  })],
  seed_oss: [llamaLike("seed_oss", {
    names: [
      [P(`${LAYER}post_attention_layernorm\\.weight`), "blk.$1.post_attention_norm.weight"],
      ...LLAMA_NAMES,
    ],
  })],
  starcoder2: [llamaLike("starcoder2", {
    metadata: (config) => common({ layer_norm_eps: config.norm_epsilon!, ...config }, "layer"),
    names: [
      [P(`${LAYER}mlp\\.c_fc\\.(\\w+)`), "blk.$1.ffn_up.$2"],
      [P(`${LAYER}mlp\\.c_proj\\.(\\w+)`), "blk.$1.ffn_down.$2"],
      ...LLAMA_NAMES,
    ],
    // Its window is not written.
    spec: { defaults: { window: 8 } },
  })],
  deepseek_moe: [llamaLike("deepseek", {
    metadata: (config) => ({
      ...common(config, "rms"),
      leading_dense_block_count: count(config.first_k_dense_replace),
      expert_count: count(config.n_routed_experts),
      expert_used_count: count(config.num_experts_per_tok),
      expert_shared_count: count(config.n_shared_experts),
      expert_feed_forward_length: count(config.moe_intermediate_size),
      expert_weights_scale: real(1),
    }),
    changes: together,
  })],
  deepseek_v2: [deepseek2(true), deepseek2(false)],
  deepseek_v3: [deepseek2(true), deepseek2(false)],
  falcon_40b: [falcon],
  falcon_7b: [falcon],
  gemma: [gemma("gemma")],
  gemma2: [gemma("gemma2", { spec: { defaults: { queryScalar: 12 } } })],
  gemma3_text: [
    gemma("gemma3", { spec: { cases: [], defaults: { queryScalar: 20, windowPeriod: 2 } } }),
  ],
  glm: [{
    arch: "chatglm",
    metadata: (config) => ({
      ...common(config, "rms"),
      "rope.dimension_count": count((config.head_dim as number) / 2),
    }),
    names: [[P(`${LAYER}mlp\\.gate_up_proj\\.weight`), "blk.$1.ffn_up.weight"], ...LLAMA_NAMES],
  }],
  gpt2: [{
    arch: "gpt2",
    metadata: (config) => common(config, "layer"),
    names: [
      [P("wte\\.weight"), "token_embd.weight"],
      [P("wpe\\.weight"), "position_embd.weight"],
      [P("ln_f\\.(\\w+)"), "output_norm.$1"],
      ...[
        ["ln_1", "attn_norm"],
        ["ln_2", "ffn_norm"],
        ["attn\\.c_attn", "attn_qkv"],
        ["attn\\.c_proj", "attn_output"],
        ["mlp\\.c_fc", "ffn_up"],
        ["mlp\\.c_proj", "ffn_down"],
      ].map(([from, to]) => [P(`h\\.(\\d+)\\.${from}\\.(\\w+)`), `blk.$1.${to}.$2`] as const),
    ],
    changes: () => [[/(attn_qkv|attn_output|ffn_up|ffn_down)\.weight/, one(transpose)]],
  }],
  gpt_neox: [{
    arch: "gptneox",
    metadata: (config) => ({
      ...common(config, "layer"),
      "rope.dimension_count": count(
        (config.rotary_pct as number) * (config.hidden_size as number) /
          (config.num_attention_heads as number),
      ),
      use_parallel_residual: ["bool", config.use_parallel_residual],
    }),
    names: [
      [P("gpt_neox\\.embed_in\\.weight"), "token_embd.weight"],
      [P("embed_out\\.weight"), "output.weight"],
      [P("gpt_neox\\.final_layer_norm\\.(\\w+)"), "output_norm.$1"],
      ...[
        ["input_layernorm", "attn_norm"],
        ["post_attention_layernorm", "ffn_norm"],
        ["attention\\.query_key_value", "attn_qkv"],
        ["attention\\.dense", "attn_output"],
        ["mlp\\.dense_h_to_4h", "ffn_up"],
        ["mlp\\.dense_4h_to_h", "ffn_down"],
      ].map(([from, to]) =>
        [P(`gpt_neox\\.layers\\.(\\d+)\\.${from}\\.(\\w+)`), `blk.$1.${to}.$2`] as const
      ),
    ],
    changes: ({ num_attention_heads: heads, hidden_size }) => [
      [/attn_qkv/, one((tensor) => ungroup(tensor, heads!, 1, hidden_size! / heads!))],
    ],
  }],
  gpt_oss: [gptOss],
  granite: [{
    arch: "granite",
    metadata: (config) => ({
      ...common(config, "rms"),
      "attention.scale": real(config.attention_multiplier),
      embedding_scale: real(config.embedding_multiplier),
      residual_scale: real(config.residual_multiplier),
      logit_scale: real(config.logits_scaling),
    }),
    names: LLAMA_NAMES,
    changes: together,
  }],
  internlm2: [{
    arch: "internlm2",
    metadata: (config) => common(config, "rms"),
    names: [
      [P("model\\.tok_embeddings\\.weight"), "token_embd.weight"],
      [P("output\\.weight"), "output.weight"],
      ...[
        ["attention_norm", "attn_norm"],
        ["ffn_norm", "ffn_norm"],
        ["attention\\.wqkv", "attn_qkv"],
        ["attention\\.wo", "attn_output"],
        ["feed_forward\\.w1", "ffn_gate"],
        ["feed_forward\\.w2", "ffn_down"],
        ["feed_forward\\.w3", "ffn_up"],
      ].map(([from, to]) => [P(`${LAYER}${from}\\.weight`), `blk.$1.${to}.weight`] as const),
      ...LLAMA_NAMES,
    ],
    changes: ({ num_attention_heads: heads, num_key_value_heads: groups, hidden_size }) => [[
      /attn_qkv/,
      (name, tensor) => {
        const size = hidden_size! / heads!, narrow = groups! * size;
        const flat = ungroup(tensor, groups!, heads! / groups!, size);
        return parts(flat, { q: hidden_size!, k: narrow, v: narrow }).map(([part, matrix]) => [
          name.replace("qkv", part),
          part === "v" ? matrix : pairsTogether(matrix, part === "q" ? heads! : groups!),
        ]);
      },
    ]],
  }],
  llama: [llamaLike("llama", { changes: together })],
  llama31: [llamaLike("llama", { changes: together, extra: llama3Factors })],
  minicpm: [llamaLike("minicpm", {
    metadata: (config) => ({
      ...common(config, "rms"),
      embedding_scale: real(config.scale_emb),
      residual_scale: real(
        (config.scale_depth as number) / Math.sqrt(config.num_hidden_layers as number),
      ),
      logit_scale: real((config.hidden_size as number) / (config.dim_model_base as number)),
    }),
    changes: together,
  })],
  mistral: [llamaLike("llama", { changes: together })],
  mistral_swa: [llamaLike("llama", {
    metadata: (config) => ({
      ...common(config, "rms"),
      "attention.sliding_window": count(config.sliding_window),
    }),
    changes: together,
  })],
  mixtral: [mixtral("experts together"), mixtral("experts apart")],
  olmoe: [olmoe("gate and up apart"), { ...olmoe("fused gate and up"), after: fuseExperts }],
  orion: [llamaLike("orion", { metadata: (config) => common(config, "layer") })],
  phi: [phi("projections apart"), { ...phi("fused projections"), after: fuseAttention }],
  phi3: [phi3],
  phi3_longrope: [phi3],
  qwen2: [
    llamaLike("qwen2"),
    // Of Qwen2.5-VL: of a head's 4 pairs 2 turn by time, 1 by row, 1 by column, which are one for text.
    llamaLike("qwen2vl", {
      title: "what reads texts of Qwen2.5-VL",
      metadata: (config) => ({
        ...common(config, "rms"),
        "rope.dimension_sections": ["array", [2, 1, 1, 0], "i32"],
      }),
    }),
  ],
  qwen2_moe: [{
    arch: "qwen2moe",
    metadata: (config) => ({
      ...common(config, "rms"),
      expert_count: count(config.num_experts),
      expert_used_count: count(config.num_experts_per_tok),
      expert_feed_forward_length: count(config.moe_intermediate_size),
      expert_shared_feed_forward_length: count(config.shared_expert_intermediate_size),
    }),
    names: [
      [P(`${LAYER}mlp\\.shared_expert_gate\\.weight`), "blk.$1.ffn_gate_inp_shexp.weight"],
      ...LLAMA_NAMES,
    ],
    changes: () => [
      [/inp_shexp/, one(({ values }) => ({ shape: [values.length], values }))],
    ],
  }],
  qwen3: [llamaLike("qwen3")],
  qwen3_moe: [llamaLike("qwen3moe", {
    metadata: (config) => ({
      ...common(config, "rms"),
      expert_count: count(config.num_experts),
      expert_used_count: count(config.num_experts_per_tok),
      expert_feed_forward_length: count(config.moe_intermediate_size),
    }),
  })],
  smollm3: [llamaLike("smollm3", { changes: together, spec: { defaults: { ropePeriod: 2 } } })],
  stablelm: [stablelm],
  stablelm_parallel: [stablelm],
  xverse: [llamaLike("xverse", { changes: together })],
  glm4: [{
    arch: "glm4",
    metadata: (config) => ({
      ...common(config, "rms"),
      "rope.dimension_count": count((config.head_dim as number) / 2),
    }),
    names: [
      [P(`${LAYER}mlp\\.gate_up_proj\\.weight`), "blk.$1.ffn_up.weight"],
      [P(`${LAYER}post_self_attn_layernorm\\.weight`), "blk.$1.post_attention_norm.weight"],
      [P(`${LAYER}post_mlp_layernorm\\.weight`), "blk.$1.post_ffw_norm.weight"],
      ...LLAMA_NAMES,
    ],
  }],
  olmo: [llamaLike("olmo", {
    metadata: (config) => ({
      ...common({ layer_norm_eps: 1e-5, ...config }, "layer"),
      ...config.clip_qkv ? { "attention.clamp_kqv": real(config.clip_qkv) } : {},
    }),
    changes: together,
  })],
  olmo2: [llamaLike("olmo2", {
    names: [
      [P(`${LAYER}post_attention_layernorm\\.weight`), "blk.$1.post_attention_norm.weight"],
      [P(`${LAYER}post_feedforward_layernorm\\.weight`), "blk.$1.post_ffw_norm.weight"],
      ...LLAMA_NAMES,
    ],
  })],
};

/** Gate and up of each expert as tensors of their own. */
const halves: Change = (name, { shape, values }) => {
  const [experts, rows, columns] = shape as [number, number, number];
  const size = rows * columns / 2;
  return ["gate", "up"].map((part, half) => [name.replace("gate_up", part), {
    shape: [experts, rows / 2, columns],
    values: values.filter((_, i) => Math.floor(i / size) % 2 === half),
  }]);
};

/** Which layers see a window only. */
function isSliding({ layer_types }: Config): boolean[] {
  return (layer_types as string[]).map((type) => type === "sliding_attention");
}

/** @param pattern How the layers with a window are told, where there are such. */
function exaone4(pattern?: (config: Config) => Typed): GgufRule {
  return llamaLike("exaone4", {
    metadata: (config) => ({
      ...common(config, "rms"),
      ...pattern && {
        "attention.sliding_window": count(config.sliding_window),
        "attention.sliding_window_pattern": pattern(config),
      },
    }),
    names: [
      [P(`${LAYER}post_attention_layernorm\\.weight`), "blk.$1.post_attention_norm.weight"],
      [P(`${LAYER}post_feedforward_layernorm\\.weight`), "blk.$1.post_ffw_norm.weight"],
      ...LLAMA_NAMES,
    ],
  });
}
