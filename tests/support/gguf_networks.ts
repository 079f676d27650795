// How llama.cpp's converters write encoder-decoders and encoders; decoders are in gguf_rules.ts.

import { count, one, P, real } from "./gguf_names.ts";
import { type GgufRule, pick } from "./to_gguf.ts";

/** T5's blocks by the kind of layer in them. */
const T5_LAYERS: readonly (readonly [string, string])[] = [
  ["SelfAttention\\.([qkvo])", "attn_$2"],
  ["SelfAttention\\.relative_attention_bias", "attn_rel_b"],
  ["EncDecAttention\\.([qkvo])", "cross_attn_$2"],
  ["DenseReluDense\\.wi_0", "ffn_gate"],
  ["DenseReluDense\\.(?:wi|wi_1)", "ffn_up"],
  ["DenseReluDense\\.wo", "ffn_down"],
];

const t5: GgufRule = {
  arch: "t5",
  metadata: (config) => ({
    context_length: count(config.n_positions ?? 512),
    embedding_length: count(config.d_model),
    feed_forward_length: count(config.d_ff),
    block_count: count(config.num_layers),
    decoder_block_count: count(config.num_decoder_layers),
    "attention.head_count": count(config.num_heads),
    "attention.key_length": count(config.d_kv),
    "attention.value_length": count(config.d_kv),
    "attention.layer_norm_epsilon": real(config.layer_norm_epsilon),
    "attention.relative_buckets_count": count(config.relative_attention_num_buckets),
    "attention.layer_norm_rms_epsilon": real(config.layer_norm_epsilon),
    decoder_start_token_id: count(config.decoder_start_token_id),
  }),
  names: [
    [P("shared\\.weight"), "token_embd.weight"],
    [P("lm_head\\.weight"), "output.weight"],
    ...["encoder", "decoder"].flatMap((stack): [RegExp, string][] => {
      const short = stack.slice(0, 3), last = stack === "encoder" ? 1 : 2;
      return [
        [P(`${stack}\\.final_layer_norm\\.weight`), `${short}.output_norm.weight`],
        ...[["0", "attn_norm"], [`${last}`, "ffn_norm"], ["1", "cross_attn_norm"]].map((
          [layer, to],
        ): [RegExp, string] => [
          P(`${stack}\\.block\\.(\\d+)\\.layer\\.${layer}\\.layer_norm\\.weight`),
          `${short}.blk.$1.${to}.weight`,
        ]),
        ...T5_LAYERS.map(([from, to]): [RegExp, string] => [
          P(`${stack}\\.block\\.(\\d+)\\.layer\\.\\d\\.${from}\\.weight`),
          `${short}.blk.$1.${to}.weight`,
        ]),
      ];
    }),
  ],
  // llama.cpp's farthest distance is always 128.
  spec: { defaults: { relativeDistance: 16 } },
};

/** Rules of encoder-decoders. */
export const SOURCE_RULES: Readonly<Record<string, GgufRule>> = { t5, t5_gated: t5 };

/** RoBERTa, which is BERT there: its positions begin at 0. */
export const ROBERTA: GgufRule = {
  arch: "bert",
  metadata: (config) => ({
    block_count: count(config.num_hidden_layers),
    context_length: count((config.max_position_embeddings as number) - 2),
    embedding_length: count(config.hidden_size),
    feed_forward_length: count(config.intermediate_size),
    "attention.head_count": count(config.num_attention_heads),
    "attention.layer_norm_epsilon": real(config.layer_norm_eps),
    "attention.causal": ["bool", false],
    pooling_type: count(2),
  }),
  plain: (config) => ({ "tokenizer.ggml.token_type_count": count(config.type_vocab_size) }),
  names: [
    [P("roberta\\.embeddings\\.word_embeddings\\.weight"), "token_embd.weight"],
    [P("roberta\\.embeddings\\.position_embeddings\\.weight"), "position_embd.weight"],
    [P("roberta\\.embeddings\\.token_type_embeddings\\.weight"), "token_types.weight"],
    [P("roberta\\.embeddings\\.LayerNorm\\.(\\w+)"), "token_embd_norm.$1"],
    ...[
      ["attention\\.self\\.query", "attn_q"],
      ["attention\\.self\\.key", "attn_k"],
      ["attention\\.self\\.value", "attn_v"],
      ["attention\\.output\\.dense", "attn_output"],
      ["attention\\.output\\.LayerNorm", "attn_output_norm"],
      ["intermediate\\.dense", "ffn_up"],
      ["output\\.dense", "ffn_down"],
      ["output\\.LayerNorm", "layer_output_norm"],
    ].map(([from, to]) =>
      [P(`roberta\\.encoder\\.layer\\.(\\d+)\\.${from}\\.(\\w+)`), `blk.$1.${to}.$2`] as const
    ),
    // Its head is not written.
    [/^lm_head\..*$/, "head"],
  ],
  changes: () => [
    [/^head$/, () => []],
    [
      /position_embd/,
      one((tensor) =>
        pick(tensor, Array.from({ length: tensor.shape[0]! - 2 }, (_, row) => row + 2))
      ),
    ],
  ],
};

/** DistilBERT, which is BERT there without types of tokens. */
export const DISTILBERT: GgufRule = {
  arch: "bert",
  metadata: (config) => ({
    block_count: count(config.n_layers),
    context_length: count(config.max_position_embeddings),
    embedding_length: count(config.dim),
    feed_forward_length: count(config.hidden_dim),
    "attention.head_count": count(config.n_heads),
    "attention.layer_norm_epsilon": real(1e-12),
    "attention.causal": ["bool", false],
    pooling_type: count(2),
  }),
  names: [
    [P("distilbert\\.embeddings\\.word_embeddings\\.weight"), "token_embd.weight"],
    [P("distilbert\\.embeddings\\.position_embeddings\\.weight"), "position_embd.weight"],
    [P("distilbert\\.embeddings\\.LayerNorm\\.(\\w+)"), "token_embd_norm.$1"],
    ...[
      ["attention\\.q_lin", "attn_q"],
      ["attention\\.k_lin", "attn_k"],
      ["attention\\.v_lin", "attn_v"],
      ["attention\\.out_lin", "attn_output"],
      ["sa_layer_norm", "attn_output_norm"],
      ["ffn\\.lin1", "ffn_up"],
      ["ffn\\.lin2", "ffn_down"],
      ["output_layer_norm", "layer_output_norm"],
    ].map(([from, to]) =>
      [
        P(`distilbert\\.transformer\\.layer\\.(\\d+)\\.${from}\\.(\\w+)`),
        `blk.$1.${to}.$2`,
      ] as const
    ),
    [/^vocab_.*$/, "head"],
  ],
  changes: () => [[/^head$/, () => []]],
};
