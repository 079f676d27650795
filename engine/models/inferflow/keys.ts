// Every key of Inferflow's model_spec.json [§4.2] and what becomes of it here. One table, so that nothing is read
// that is not in it and nothing in it is forgotten: a key that is not here is warned of.

import { anything, flag, list, number, oneOf, type Rule, table, text } from "../check.ts";

/** A known key. */
export interface SpecKey {
  readonly rule: Rule<unknown>;
  /** How it is honoured, or why it changes nothing. */
  readonly use: string;
}

const key = (rule: Rule<unknown>, use: string): SpecKey => ({ rule, use });

/** Types of networks, and which of the built-in tensor maps they have. */
const NETWORK_TYPES = [
  "general",
  "transformer",
  "transformer.encoder_decoder",
  "transformer.encoder_only",
  "transformer.decoder_only",
  "transformer.decoder_only.sparse_moe",
  "bert",
  "llama",
  "transformer.llama",
  "bloom",
  "transformer.bloom",
] as const;

/** Keys of the file itself. */
export const TOP_KEYS = {
  COMMENTS: key(anything, "a comment"),
  config_file: key(text, "config.json, which is read beside the weights; another name is refused"),
  model_files: key(list(text), "the first is opened; an index or a folder finds the others"),
  model_file_format: key(
    oneOf("std", "pickle", "safetensors", "ggml", "gguf", "llama2.c"),
    "compared with what the file is",
  ),
  vocab_size: key(number, "compared with the rows of the embedding"),
  input_vocab_size: key(number, "the same"),
  padded_vocab_size: key(number, "the same"),
  output_vocab_size: key(number, "the same"),
  unk_token: key(anything, "the tokenizer's own counts"),
  pad_token: key(anything, "the tokenizer's own counts"),
  bos_token: key(anything, "the tokenizer's own counts"),
  eos_token: key(anything, "the tokenizer's own counts"),
  tokenizer_files: key(list(text), "files beside the weights are found by their names"),
  tokenizer_file: key(text, "the same"),
  token_bytes_mapping: key(number, "read from the tokenizer's file"),
  token_remap_file: key(text, "refused unless empty"),
  tokenization_algorithm: key(
    oneOf("std", "fmm", "fmm2", "bpe", "ulm", ""),
    "fmm and fmm2 match greedily; others are compared with what the tokenizer's file is",
  ),
  generation_config: key(text, "read by the inference configuration"),
  network_structure: key(anything, "see NETWORK_KEYS"),
} as const satisfies Record<string, SpecKey>;

/** Keys of `network_structure`. */
export const NETWORK_KEYS = {
  COMMENTS: key(anything, "a comment"),
  type: key(oneOf(...NETWORK_TYPES), "chooses built-in tensor names and defaults"),
  normalization_function: key(oneOf("std", "rms", "linear"), "norm.kind"),
  activation_function: key(
    oneOf("sigmoid", "elu", "relu", "gelu", "gelu_exact", "silu", "glu_silu"),
    "feedForward.activation; gelu is the form with tanh",
  ),
  position_embedding: key(
    oneOf("", "empty", "alibi", "rope", "sinusoidal", "sinusoidal2"),
    "attention.kinds, embedding.positions and embedding.sinusoidal",
  ),
  has_embedding_linear_norm: key(flag, "embedding.scale"),
  embedding_linear_scale: key(number, "embedding.scale; 0 is the root of the width"),
  linear_norm_before_sinusoidal: key(flag, "embedding.scale, with sinusoidal positions"),
  rope_theta: key(number, "defaults.ropeTheta; the config counts before it"),
  rope_dim: key(number, "defaults.ropeDim; -1 is the whole head"),
  partial_rotary_factor: key(number, "defaults.ropeFraction; the config counts before it"),
  pos_embedding_offset: key(number, "embedding.positions.offset, embedding.sinusoidal.offset"),
  qk_column_order: key(number, "attention.ropeStyle: 2 is half, 0 and 1 are interleaved"),
  qkv_format: key(number, "how a fused query, key and value is cut"),
  kq_scale: key(number, "guards half floats against overflow; changes no result"),
  normalize_lm_head: key(flag, "head.unitRows"),
  is_attn_post_as_residual: key(flag, "whether a norm behind attention is of the sum"),
  is_parallel_attn: key(flag, "both blocks read the same normed stream"),
  mlp_attn_share_input: key(flag, "both blocks read the stream in front of the layer"),
  use_self_attn_pre_norm: key(flag, "whether attention has a norm in front"),
  attn_pre_norm_base: key(number, "norm.base"),
  ffn_pre_norm_base: key(number, "norm.base"),
  output_norm_base: key(number, "norm.base"),
  attn_out_scale: key(number, "residual"),
  ffn_out_scale: key(number, "residual"),
  out_scale: key(number, "head.scale"),
  expert_count: key(number, "defaults.experts"),
  using_expert_count: key(number, "refused where it is fewer than all"),
  moe_top_k: key(number, "defaults.expertsUsed"),
  moe_norm_top_k_prob: key(flag, "defaults.expertNormalize"),
  moe_layer_start: key(number, "defaults.denseLayers"),
  moe_layer_end: key(number, "refused where layers behind it are dense"),
  has_shared_expert: key(flag, "feedForward.shared"),
  tensor_name_prefix: key(text, "in front of the names of tensor_name_mapping, if a tensor has it"),
  tensor_name_mapping: key(table(text), "names.tensors"),
  tensor_name_pre_mapping: key(table(text), "names.renamed, by ending"),
} as const satisfies Record<string, SpecKey>;
