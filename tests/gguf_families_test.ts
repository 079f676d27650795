// GGUF files of the tiny families, rewritten as llama.cpp's converters do (support/to_gguf.ts), against the
// logits of the checkpoints: names, metadata and orders of rows of every GGUF spec that can be had this way.

import { assert, assertEquals } from "@std/assert";
import { openModel } from "../engine/formats/open_model.ts";
import type { MetadataValue } from "../engine/formats/source.ts";
import { buildModel, readModelParts } from "../engine/models/build.ts";
import { chooseSpec } from "../engine/models/specs/mod.ts";
import { plan } from "../engine/plan/planner.ts";
import { createReferenceBackend } from "../engine/plan/reference_backend.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";
import {
  type Change,
  type GgufRule,
  type Matrix,
  pairsTogether,
  pick,
  toGguf,
  transpose,
  ungroup,
} from "./support/to_gguf.ts";
import type { Typed } from "./support/write_gguf.ts";

type Config = Readonly<Record<string, MetadataValue>>;

const count = (value: MetadataValue | undefined): Typed => ["u32", value];
const real = (value: MetadataValue | undefined): Typed => ["f32", value];

/** Keys that every file has; `names` are those of config.json. */
function common(config: Config, epsilon: "rms" | "layer", kvHeads?: MetadataValue) {
  const heads = config.num_attention_heads ?? config.n_head;
  const hidden = (config.hidden_size ?? config.n_embd) as number;
  const theta = config.rope_theta ?? (config.rope_parameters as Config | undefined)?.rope_theta;
  const eps = config.rms_norm_eps ?? config.layer_norm_eps ?? config.layer_norm_epsilon ??
    config.layernorm_epsilon;
  return {
    context_length: count(
      config.max_position_embeddings ?? config.n_positions ?? config.seq_length ?? 128,
    ),
    embedding_length: count(hidden),
    block_count: count(config.num_hidden_layers ?? config.n_layer ?? config.num_layers),
    feed_forward_length: count(
      config.intermediate_size ?? config.ffn_hidden_size ?? config.n_inner ?? 4 * hidden,
    ),
    "attention.head_count": count(heads),
    "attention.head_count_kv": count(kvHeads ?? config.num_key_value_heads ?? heads),
    [`attention.layer_norm_${epsilon === "rms" ? "rms_" : ""}epsilon`]: real(eps),
    ...theta ? { "rope.freq_base": real(theta) } : {},
  };
}

const LAYER = "model\\.layers\\.(\\d+)\\.";
const P = (text: string) => new RegExp(`^${text}$`);

/** Names of checkpoints that are laid out like Llama's. */
const LLAMA_NAMES: GgufRule["names"] = [
  [P("model\\.embed_tokens\\.weight"), "token_embd.weight"],
  [P("model\\.(?:final_layer)?norm\\.(\\w+)"), "output_norm.$1"],
  [P("lm_head\\.(\\w+)"), "output.$1"],
  [P(`${LAYER}input_layernorm\\.(\\w+)`), "blk.$1.attn_norm.$2"],
  [P(`${LAYER}post_attention_layernorm\\.(\\w+)`), "blk.$1.ffn_norm.$2"],
  [P(`${LAYER}self_attn\\.([qkv])_proj\\.(\\w+)`), "blk.$1.attn_$2.$3"],
  [P(`${LAYER}self_attn\\.([qk])_norm\\.weight`), "blk.$1.attn_$2_norm.weight"],
  [
    P(`${LAYER}self_attn\\.([qk])_layernorm\\.norms\\.(\\d+)\\.weight`),
    "blk.$1.attn_$2_norm.weight#$3",
  ],
  [P(`${LAYER}self_attn\\.(?:o_proj|dense)\\.(\\w+)`), "blk.$1.attn_output.$2"],
  [P(`${LAYER}mlp\\.(gate|up|down)_proj\\.weight`), "blk.$1.ffn_$2.weight"],
  [P(`${LAYER}mlp\\.gate\\.weight`), "blk.$1.ffn_gate_inp.weight"],
  [
    P(`${LAYER}mlp\\.experts\\.(\\d+)\\.(gate|up|down)_proj\\.weight`),
    "blk.$1.ffn_$3_exps.weight#$2",
  ],
  [P(`${LAYER}mlp\\.shared_experts?\\.(gate|up|down)_proj\\.weight`), "blk.$1.ffn_$2_shexp.weight"],
];

const bloomLike = (prefix: string): GgufRule["names"] => [
  [P(`${prefix}word_embeddings\\.weight`), "token_embd.weight"],
  [P(`${prefix}word_embeddings_layernorm\\.(\\w+)`), "token_embd_norm.$1"],
  [P(`${prefix}ln_f\\.(\\w+)`), "output_norm.$1"],
  [P("lm_head\\.weight"), "output.weight"],
  [P(`${prefix}h\\.(\\d+)\\.(?:input_layernorm|ln_mlp)\\.(\\w+)`), "blk.$1.attn_norm.$2"],
  [P(`${prefix}h\\.(\\d+)\\.ln_attn\\.(\\w+)`), "blk.$1.attn_norm_2.$2"],
  [P(`${prefix}h\\.(\\d+)\\.post_attention_layernorm\\.(\\w+)`), "blk.$1.ffn_norm.$2"],
  [P(`${prefix}h\\.(\\d+)\\.self_attention\\.query_key_value\\.(\\w+)`), "blk.$1.attn_qkv.$2"],
  [P(`${prefix}h\\.(\\d+)\\.self_attention\\.dense\\.(\\w+)`), "blk.$1.attn_output.$2"],
  [P(`${prefix}h\\.(\\d+)\\.mlp\\.dense_h_to_4h\\.(\\w+)`), "blk.$1.ffn_up.$2"],
  [P(`${prefix}h\\.(\\d+)\\.mlp\\.dense_4h_to_h\\.(\\w+)`), "blk.$1.ffn_down.$2"],
];

const one = (change: (tensor: Matrix) => Matrix): Change => (name, tensor) => [[
  name,
  change(tensor),
]];

/** Queries and keys whose rotary pairs are brought together. */
const together: GgufRule["changes"] = ({ num_attention_heads, num_key_value_heads }) => [
  [/attn_q\.(weight|bias)$/, one((tensor) => pairsTogether(tensor, num_attention_heads!))],
  [
    /attn_k\.(weight|bias)$/,
    one((tensor) => pairsTogether(tensor, num_key_value_heads ?? num_attention_heads!)),
  ],
];

const falcon: GgufRule = {
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

const cohere: GgufRule = {
  arch: "command-r",
  metadata: (config) => ({
    ...common(config, "layer"),
    logit_scale: real(config.logit_scale),
    "rope.scaling.type": ["string", "none"],
  }),
  names: LLAMA_NAMES,
};

const stablelm: GgufRule = {
  arch: "stablelm",
  metadata: (config) => ({
    ...common(config, "layer"),
    "rope.dimension_count": count(2),
    use_parallel_residual: ["bool", config.use_parallel_residual],
  }),
  names: LLAMA_NAMES,
};

const phi3: GgufRule = {
  arch: "phi3",
  metadata: (config) => ({
    ...common(config, "rms"),
    "rope.scaling.original_context_length": count(config.original_max_position_embeddings),
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

const RULES: Readonly<Record<string, GgufRule>> = {
  bloom: {
    arch: "bloom",
    metadata: (config) => common(config, "layer"),
    names: bloomLike("transformer\\."),
    changes: ({ n_head, hidden_size }) => [
      [/attn_qkv/, one((tensor) => ungroup(tensor, n_head!, 1, hidden_size! / n_head!))],
    ],
  },
  chatglm2: {
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
  },
  cohere,
  cohere_qk_norm: cohere,
  deepseek_v3: {
    arch: "deepseek2",
    metadata: (config) => ({
      ...common(config, "rms", 1),
      "attention.q_lora_rank": count(config.q_lora_rank),
      "attention.kv_lora_rank": count(config.kv_lora_rank),
      "attention.key_length": count(
        (config.kv_lora_rank as number) + (config.qk_rope_head_dim as number),
      ),
      "attention.value_length": count(config.kv_lora_rank),
      "attention.key_length_mla": count(config.qk_head_dim),
      "attention.value_length_mla": count(config.v_head_dim),
      "rope.dimension_count": count(config.qk_rope_head_dim),
      leading_dense_block_count: count(config.first_k_dense_replace),
      expert_count: count(config.n_routed_experts),
      expert_used_count: count(config.num_experts_per_tok),
      expert_shared_count: count(config.n_shared_experts),
      expert_feed_forward_length: count(config.moe_intermediate_size),
      expert_group_count: count(config.n_group),
      expert_group_used_count: count(config.topk_group),
      expert_weights_scale: real(config.routed_scaling_factor),
      expert_weights_norm: ["bool", config.norm_topk_prob],
      expert_gating_func: count(2),
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
    changes: ({ num_attention_heads: heads, qk_nope_head_dim: plain, v_head_dim: value }) => [
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
    ],
  },
  falcon_40b: falcon,
  falcon_7b: falcon,
  gpt2: {
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
  },
  granite: {
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
  },
  olmoe: {
    arch: "olmoe",
    metadata: (config) => ({
      ...common(config, "rms"),
      expert_count: count(config.num_experts),
      expert_used_count: count(config.num_experts_per_tok),
    }),
    names: LLAMA_NAMES,
  },
  phi: {
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
  },
  phi3,
  phi3_longrope: phi3,
  qwen2_moe: {
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
  },
  stablelm,
  stablelm_parallel: stablelm,
};

for (const [name, rule] of Object.entries(RULES)) {
  Deno.test(`${name} as a GGUF file gives the logits of its checkpoint`, async () => {
    const read = (file: string) => JSON.parse(readFixture(`models/${name}/${file}`));
    const older = [...Deno.readDirSync(fixturePath(`models/${name}`))]
      .some((entry) => entry.name === "config.v4.json");
    const config = read(older ? "config.v4.json" : "config.json") as Config;
    const expected = read("expected.json");
    const weights = (expected.weights_from ?? "").replace("model.safetensors", "");
    const path = `${Deno.makeTempDirSync()}/model.gguf`;
    Deno.writeFileSync(path, await toGguf(fixturePath(`models/${name}/${weights}`), config, rule));
    const file = await openModel(path);
    try {
      const { resolved, architecture } = chooseSpec(file);
      const parts = readModelParts(resolved, file, architecture);
      const { graph, warnings } = await buildModel(
        parts,
        {
          ...{ capacity: 32, cacheType: "f32", embeddings: false },
        } as const,
      );
      assertEquals(warnings, []);
      const planned = plan(graph, { limits: { M: 32, L: 1 } });
      const executable = await createReferenceBackend().prepare(planned, { slots: 1 });
      for (const { input_ids, last_logits } of expected.cases) {
        input_ids.forEach((id: number, row: number) => {
          executable.input("tokens")[row] = id;
          executable.input("positions")[row] = row;
          executable.input("slots")[row] = 0;
        });
        executable.input("logit_rows")[0] = input_ids.length - 1;
        const slot = executable.openSlot();
        await executable.run({ M: input_ids.length, L: 1 });
        executable.closeSlot(slot);
        const logits = executable.output("logits");
        const worst = Math.max(
          ...last_logits.map((value: number, i: number) => Math.abs(value - Number(logits[i]))),
        );
        assert(worst <= 3e-4, `a logit is off by ${worst}`);
      }
      executable.dispose();
    } finally {
      file.close();
      Deno.removeSync(path.replace("/model.gguf", ""), { recursive: true });
    }
  });
}
