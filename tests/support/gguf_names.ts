// What the rules of several families share (gguf_rules.ts): keys that every file has, names of checkpoints that are
// laid out alike, and the orders of rows that llama.cpp's converters change.

import type { MetadataValue } from "../../engine/formats/source.ts";
import { type Change, type GgufRule, type Matrix, pairsTogether, pick } from "./to_gguf.ts";
import type { Typed } from "./write_gguf.ts";

/** Patterns of names and what they become. */
export type NameRules = GgufRule["names"];
/** Changes of tensors. */
export type ChangeRules = NonNullable<GgufRule["changes"]>;

/** What config.json says. */
export type Config = Readonly<Record<string, MetadataValue>>;

/** A whole number. */
export const count = (value: MetadataValue | undefined): Typed => ["u32", value];
/** A float. */
export const real = (value: MetadataValue | undefined): Typed => ["f32", value];

/** Keys and their values. */
export type Metadata = Readonly<Record<string, Typed>>;

/** Keys that every file has; `names` are those of config.json. */
export function common(
  config: Config,
  epsilon: "rms" | "layer",
  kvHeads?: MetadataValue,
): Metadata {
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
    ...config.head_dim ? headSizes(config) : {},
  };
}

function headSizes({ head_dim }: Config): Readonly<Record<string, Typed>> {
  return { "attention.key_length": count(head_dim), "attention.value_length": count(head_dim) };
}

/** What a layer's names begin with. */
export const LAYER = "model\\.layers\\.(\\d+)\\.";
/** The whole of a name. */
export const P = (text: string) => new RegExp(`^${text}$`);

/** Names of checkpoints that are laid out like Llama's. */
export const LLAMA_NAMES: NameRules = [
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
  [P(`${LAYER}mlp\\.(gate|up|down)_proj\\.(\\w+)`), "blk.$1.ffn_$2.$3"],
  [P(`${LAYER}mlp\\.gate\\.weight`), "blk.$1.ffn_gate_inp.weight"],
  [
    P(`${LAYER}mlp\\.experts\\.(\\d+)\\.(gate|up|down)_proj\\.weight`),
    "blk.$1.ffn_$3_exps.weight#$2",
  ],
  [P(`${LAYER}mlp\\.shared_experts?\\.(gate|up|down)_proj\\.weight`), "blk.$1.ffn_$2_shexp.weight"],
];

/** Names of checkpoints that are laid out like Bloom's. */
export const bloomLike = (prefix: string): NameRules => [
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

/** A tensor that stays one. */
export const one = (change: (tensor: Matrix) => Matrix): Change => (name, tensor) => [[
  name,
  change(tensor),
]];

/** Queries and keys whose rotary pairs are brought together. */
export const together: ChangeRules = ({ num_attention_heads, num_key_value_heads }) => [
  [/attn_q\.(weight|bias)$/, one((tensor) => pairsTogether(tensor, num_attention_heads!))],
  [
    /attn_k\.(weight|bias)$/,
    one((tensor) => pairsTogether(tensor, num_key_value_heads ?? num_attention_heads!)),
  ],
];

/** Norms with 1 added, as Gemma's are stored. */
export const plusOne: ReturnType<ChangeRules>[number] = [
  /norm\.weight$/,
  one(({ shape, values }) => ({ shape, values: values.map((value) => value + 1) })),
];

/** Rows of a fused projection under names of their own. */
export function parts(
  tensor: Matrix,
  sizes: Readonly<Record<string, number>>,
): [string, Matrix][] {
  let from = 0;
  return Object.entries(sizes).map(([name, size]) => {
    const first = from;
    from += size;
    return [name, pick(tensor, Array.from({ length: size }, (_, row) => first + row))];
  });
}

/** Every second entry of the last axis. */
export function everySecond({ shape, values }: Matrix, first: 0 | 1): Matrix {
  return {
    shape: [...shape.slice(0, -1), shape.at(-1)! / 2],
    values: values.filter((_, i) => i % 2 === first),
  };
}
