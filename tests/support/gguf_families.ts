// Families whose converters do more than rename, and what members of one have in common (gguf_rules.ts has the
// table). Told from the source of llama.cpp's converters and not from our specs.

import {
  bloomLike,
  type ChangeRules,
  common,
  type Config,
  count,
  everySecond,
  LAYER,
  LLAMA_NAMES,
  one,
  P,
  parts,
  plusOne,
  real,
  together,
} from "./gguf_names.ts";
import {
  concat,
  type GgufRule,
  type Matrix,
  pairsTogether,
  pick,
  transpose,
  ungroup,
} from "./to_gguf.ts";
import type { MetadataValue } from "../../engine/formats/source.ts";

/** Falcon. */
export const falcon: GgufRule = {
  arch: "falcon",
  metadata: (config) =>
    common(config, "layer", config.new_decoder_architecture ? config.num_kv_heads : 1),
  names: bloomLike("transformer\\."),
  changes: (
    { num_attention_heads: heads, num_kv_heads, hidden_size, new_decoder_architecture },
  ) => {
    const groups = new_decoder_architecture ? num_kv_heads! : 1;
    const size = hidden_size! / heads!;
    return [[/attn_qkv/, one((tensor) => ungroup(tensor, groups, heads! / groups, size))]];
  },
};

/** Command-R, with and without norms of heads. */
export const cohere: GgufRule = {
  arch: "command-r",
  metadata: (config) => ({
    ...common(config, "layer"),
    logit_scale: real(config.logit_scale),
    "rope.scaling.type": ["string", "none"],
  }),
  names: LLAMA_NAMES,
};

/** StableLM. */
export const stablelm: GgufRule = {
  arch: "stablelm",
  metadata: (config) => ({
    ...common(config, "layer"),
    "rope.dimension_count": count(2),
    use_parallel_residual: ["bool", config.use_parallel_residual],
  }),
  names: LLAMA_NAMES,
};

/** Phi 3. */
export const phi3: GgufRule = {
  arch: "phi3",
  metadata: (config) => ({
    ...common(config, "rms"),
    "rope.scaling.original_context_length": count(config.original_max_position_embeddings),
    ...config.rope_scaling ? { "rope.scaling.attn_factor": real(attentionFactor(config)) } : {},
    "attention.sliding_window": count(config.sliding_window ?? 0),
  }),
  names: [
    [P(`${LAYER}self_attn\\.qkv_proj\\.weight`), "blk.$1.attn_qkv.weight"],
    [P(`${LAYER}mlp\\.gate_up_proj\\.weight`), "blk.$1.ffn_up.weight"],
    ...LLAMA_NAMES,
  ],
  extra(config) {
    const { long_factor: long, short_factor: short } = (config.rope_scaling ?? {}) as Config;
    if (!long) return [];
    const vector = (values: MetadataValue | undefined): Matrix => ({
      shape: [(values as number[]).length],
      values: Float32Array.from(values as number[]),
    });
    return [
      ["rope_factors_long.weight", vector(long)],
      ["rope_factors_short.weight", vector(short)],
    ];
  },
};

/** How much longer contexts strengthen attention, as the converter writes it. */
function attentionFactor(config: Config): number {
  const original = Number(config.original_max_position_embeddings);
  const scale = Number(config.max_position_embeddings) / original;
  return scale > 1 ? Math.sqrt(1 + Math.log(scale) / Math.log(original)) : 1;
}

/** DeepSeek 2 and 3: latents in the form of today, or in that of files from before April 2025. */
export const deepseek2 = (isSplit: boolean): GgufRule => ({
  arch: "deepseek2",
  title: isSplit ? "keys and values split" : "keys and values in one",
  metadata: (config) => ({
    ...common(config, "rms", isSplit ? 1 : config.num_attention_heads),
    ...config.q_lora_rank ? { "attention.q_lora_rank": count(config.q_lora_rank) } : {},
    "attention.kv_lora_rank": count(config.kv_lora_rank),
    ...isSplit
      ? {
        "attention.key_length": count(
          (config.kv_lora_rank as number) + (config.qk_rope_head_dim as number),
        ),
        "attention.value_length": count(config.kv_lora_rank),
        "attention.key_length_mla": count(config.qk_head_dim),
        "attention.value_length_mla": count(config.v_head_dim),
      }
      : {
        "attention.key_length": count(config.qk_head_dim),
        "attention.value_length": count(config.v_head_dim),
      },
    "rope.dimension_count": count(config.qk_rope_head_dim),
    leading_dense_block_count: count(config.first_k_dense_replace),
    expert_count: count(config.n_routed_experts),
    expert_used_count: count(config.num_experts_per_tok),
    expert_shared_count: count(config.n_shared_experts),
    expert_feed_forward_length: count(config.moe_intermediate_size),
    expert_weights_scale: real(config.routed_scaling_factor),
    expert_weights_norm: ["bool", config.norm_topk_prob],
    ...config.topk_method === "greedy" ? {} : {
      expert_group_count: count(config.n_group),
      expert_group_used_count: count(config.topk_group),
      expert_gating_func: count(2),
    },
  }),
  names: [
    [P(`${LAYER}self_attn\\.q_a_proj\\.weight`), "blk.$1.attn_q_a.weight"],
    [P(`${LAYER}self_attn\\.q_b_proj\\.weight`), "blk.$1.attn_q_b.weight"],
    [P(`${LAYER}self_attn\\.q_a_layernorm\\.weight`), "blk.$1.attn_q_a_norm.weight"],
    [P(`${LAYER}self_attn\\.kv_a_proj_with_mqa\\.weight`), "blk.$1.attn_kv_a_mqa.weight"],
    [P(`${LAYER}self_attn\\.kv_a_layernorm\\.weight`), "blk.$1.attn_kv_a_norm.weight"],
    [P(`${LAYER}self_attn\\.kv_b_proj\\.weight`), "blk.$1.attn_kv_b.weight"],
    [P(`${LAYER}mlp\\.gate\\.e_score_correction_bias`), "blk.$1.exp_probs_b.bias"],
    ...LLAMA_NAMES,
  ],
  ...isSplit && { changes: splitLatents },
});

const splitLatents: ChangeRules = (
  { num_attention_heads: heads, qk_nope_head_dim: plain, v_head_dim: value },
) => [
  [/attn_kv_b/, (name, tensor) => {
    const rows = (from: number, size: number) =>
      pick(
        tensor,
        Array.from({ length: heads! * size }, (_, row) =>
          Math.floor(row / size) * (plain! + value!) + from + row % size),
      );
    const stack = ({ shape, values }: Matrix): Matrix => ({
      shape: [heads!, shape[0]! / heads!, shape[1]!],
      values,
    });
    return [
      [name.replace("kv_b", "k_b"), transpose(stack(rows(0, plain!)))],
      [name.replace("kv_b", "v_b"), stack(rows(plain!, value!))],
    ];
  }],
];

/** Phi 2. */
export const phi = (title: string): GgufRule => ({
  title,
  arch: "phi2",
  metadata: (config) => ({
    ...common(config, "layer"),
    "rope.dimension_count": count(4),
  }),
  names: [
    [P(`${LAYER}mlp\\.fc1\\.(\\w+)`), "blk.$1.ffn_up.$2"],
    [P(`${LAYER}mlp\\.fc2\\.(\\w+)`), "blk.$1.ffn_down.$2"],
    ...LLAMA_NAMES,
  ],
});

/** OLMoE. */
export const olmoe = (title: string): GgufRule => ({
  title,
  arch: "olmoe",
  metadata: (config) => ({
    ...common(config, "rms"),
    expert_count: count(config.num_experts),
    expert_used_count: count(config.num_experts_per_tok),
  }),
  names: LLAMA_NAMES,
});

/** Llama's, and whatever else is laid out like it. */
export const llamaLike = (arch: string, more?: Partial<GgufRule>): GgufRule => ({
  arch,
  metadata: (config) => common(config, "rms"),
  names: LLAMA_NAMES,
  ...more,
});

/** Gemma 1 to 3. */
export const gemma = (arch: string, more?: Partial<GgufRule>): GgufRule => ({
  arch,
  metadata: (config) => ({
    ...common(config, "rms"),
    ...config.sliding_window ? { "attention.sliding_window": count(config.sliding_window) } : {},
    ...config.attn_logit_softcapping
      ? { attn_logit_softcapping: real(config.attn_logit_softcapping) }
      : {},
    ...config.final_logit_softcapping
      ? { final_logit_softcapping: real(config.final_logit_softcapping) }
      : {},
    ...config.rope_scaling
      ? {
        "rope.scaling.type": ["string", "linear"],
        "rope.scaling.factor": real((config.rope_scaling as Config).factor),
      }
      : {},
  }),
  names: arch === "gemma" ? LLAMA_NAMES : [
    [P(`${LAYER}post_attention_layernorm\\.weight`), "blk.$1.post_attention_norm.weight"],
    [P(`${LAYER}pre_feedforward_layernorm\\.weight`), "blk.$1.ffn_norm.weight"],
    [P(`${LAYER}post_feedforward_layernorm\\.weight`), "blk.$1.post_ffw_norm.weight"],
    ...LLAMA_NAMES,
  ],
  changes: () => [plusOne],
  ...more,
});

/** Queries, keys and values as one tensor. */
export const fuseAttention: NonNullable<GgufRule["after"]> = (tensors) =>
  joined(
    tensors,
    /attn_q\.(weight|bias)$/,
    (name, suffix) =>
      ["q", "k", "v"].map((part) => name.replace(/attn_q\.\w+$/, `attn_${part}.${suffix}`)),
    "attn_qkv",
  );

/** Baichuan. */
export const baichuan = (more: Partial<GgufRule> = {}): GgufRule => ({
  arch: "baichuan",
  metadata: (config) => ({
    ...common(config, "rms"),
    tensor_data_layout: ["string", "Meta AI original pth"],
  }),
  names: [[P(`${LAYER}self_attn\\.W_pack\\.weight`), "blk.$1.attn_qkv.weight"], ...LLAMA_NAMES],
  changes: ({ hidden_size: size, num_attention_heads: heads }) => [[
    /attn_qkv/,
    (name, tensor) =>
      parts(tensor, { q: size!, k: size!, v: size! }).map(([part, matrix]) => [
        name.replace("qkv", part),
        part === "v" ? matrix : pairsTogether(matrix, heads!),
      ]),
  ]],
  ...more,
});

/** Mixtral. */
export const mixtral = (title: string): GgufRule => ({
  arch: "llama",
  title,
  metadata: (config) => ({
    ...common(config, "rms"),
    expert_count: count(config.num_local_experts),
    expert_used_count: count(config.num_experts_per_tok),
  }),
  names: [
    [P(`${LAYER}block_sparse_moe\\.gate\\.weight`), "blk.$1.ffn_gate_inp.weight"],
    ...[["w1", "gate"], ["w2", "down"], ["w3", "up"]].map(([from, to]) =>
      [
        P(`${LAYER}block_sparse_moe\\.experts\\.(\\d+)\\.${from}\\.weight`),
        title === "experts apart"
          ? `blk.$1.ffn_${to}.$2.weight`
          : `blk.$1.ffn_${to}_exps.weight#$2`,
      ] as const
    ),
    ...LLAMA_NAMES,
  ],
  changes: together,
});

/** Tensors of one length along the columns as one, in the place of the first. */
function joined(
  tensors: readonly (readonly [string, Matrix])[],
  first: RegExp,
  members: (name: string, suffix: string) => readonly string[],
  into: string,
): [string, Matrix][] {
  const all = new Map(tensors);
  for (const name of [...all.keys()].filter((name) => first.test(name))) {
    const suffix = name.split(".").at(-1)!;
    const names = members(name, suffix);
    const matrices = names.map((member) => all.get(member)!);
    names.forEach((member) => all.delete(member));
    all.set(name.replace(/[^.]+\.\w+$/, `${into}.${suffix}`), concat(matrices));
  }
  return [...all];
}

/** Gate and up of all experts as one tensor. */
export const fuseExperts: NonNullable<GgufRule["after"]> = (tensors) =>
  joined(
    tensors,
    /ffn_gate_exps\.weight$/,
    (name) => [name, name.replace("gate", "up")],
    "ffn_gate_up_exps",
  );

/** Divisors of Llama 3.1's frequencies, which its converter works out. */
export function llama3Factors(config: Config): [string, Matrix][] {
  const rule = {
    rope_theta: config.rope_theta,
    ...(config.rope_scaling ?? config.rope_parameters) as Config,
  };
  const { factor, rope_theta: theta, low_freq_factor, high_freq_factor, ...rest } =
    rule as Readonly<Record<string, number>>;
  const size = config.head_dim as number;
  const values = Float32Array.from({ length: size / 2 }, (_, i) => {
    const turns = rest.original_max_position_embeddings! * theta! ** (-2 * i / size) /
      (2 * Math.PI);
    if (turns < low_freq_factor!) return factor!;
    if (turns > high_freq_factor!) return 1;
    const smooth = (turns - low_freq_factor!) / (high_freq_factor! - low_freq_factor!);
    return 1 / ((1 - smooth) / factor! + smooth);
  });
  return [["rope_freqs.weight", { shape: [size / 2], values }]];
}

/** gpt-oss. */
export const gptOss: GgufRule = {
  arch: "gpt-oss",
  metadata(config) {
    const { factor, original_max_position_embeddings } = config.rope_scaling as Config;
    return {
      ...common(config, "rms"),
      "attention.sliding_window": count(config.sliding_window),
      "rope.scaling.type": ["string", "yarn"],
      "rope.scaling.factor": real(factor),
      "rope.scaling.original_context_length": count(original_max_position_embeddings),
      expert_count: count(config.num_local_experts),
      expert_used_count: count(config.num_experts_per_tok),
      expert_feed_forward_length: count(config.intermediate_size),
    };
  },
  names: [
    [P(`${LAYER}post_attention_layernorm\\.weight`), "blk.$1.post_attention_norm.weight"],
    [P(`${LAYER}self_attn\\.sinks`), "blk.$1.attn_sinks.weight"],
    [P(`${LAYER}mlp\\.router\\.(\\w+)`), "blk.$1.ffn_gate_inp.$2"],
    [P(`${LAYER}mlp\\.experts\\.(gate_up|down)_proj_bias`), "blk.$1.ffn_$2_exps.bias"],
    [P(`${LAYER}mlp\\.experts\\.(gate_up|down)_proj`), "blk.$1.ffn_$2_exps.weight"],
    ...LLAMA_NAMES,
  ],
  changes: () => [
    [/ffn_down_exps\.weight/, one(transpose)],
    [/ffn_gate_up_exps/, (name, tensor) =>
      (["gate", "up"] as const).map((part, first) => {
        const half = everySecond(tensor, first as 0 | 1);
        return [
          name.replace("gate_up", part),
          name.endsWith("weight") ? transpose(half) : half,
        ];
      })],
  ],
};
