// The 35 configurations that Inferflow ships: name, what its config.json says, and the atoms that it has here.
// Its documentation's known slips are put right: Orion normalises with mean and variance, Falcon's GELU is the
// exact one.

import type { MetadataValue } from "../../engine/formats/source.ts";

/** What config.json, or a GGUF header, says. */
export type Config = Readonly<Record<string, MetadataValue>>;

const llama: Config = { model_type: "llama" };
const qwen: Config = { model_type: "qwen2" };
const falcon = { model_type: "falcon", multi_query: true, parallel_attn: true };
const opt = { model_type: "opt", activation_function: "relu" };

/** Name, what config.json says, and norm/activation/position with what is special. */
export const INFERFLOW_CONFIGURATIONS: readonly (readonly [string, Config, string])[] = [
  ["aquila_chat2_34b", { model_type: "aquila" }, "rms/silu/rope"],
  [
    "baichuan2_7b_chat",
    { model_type: "baichuan", max_position_embeddings: 4096 },
    "rms/silu/rope, unit rows",
  ],
  ["baichuan2_13b_chat", { model_type: "baichuan" }, "rms/silu/alibi, unit rows"],
  ["bert_base_multilingual_cased", { model_type: "bert", hidden_act: "gelu" }, "layer/gelu/learnt"],
  ["bloomz_3b", { model_type: "bloom" }, "layer/gelu_tanh/alibi, embedding normed"],
  ["bloomz_3b.safetensors", { model_type: "bloom" }, "layer/gelu_tanh/alibi, embedding normed"],
  ["chatglm2_6b", { model_type: "chatglm" }, "rms/silu/rope interleaved"],
  ["deepseek_moe_16b_base", { model_type: "deepseek" }, "rms/silu/rope, mixture, shared expert"],
  [
    "facebook_m2m100_418m",
    { model_type: "m2m_100", activation_function: "relu" },
    "layer/relu/sinusoidal",
  ],
  [
    "falcon_7b_instruct",
    { ...falcon, new_decoder_architecture: false },
    "layer/gelu/rope, parallel, one norm",
  ],
  [
    "falcon_40b_instruct",
    { ...falcon, new_decoder_architecture: true },
    "layer/gelu/rope, parallel, two norms",
  ],
  ["fusellm_7b", llama, "rms/silu/rope"],
  ["open_llama_3b", llama, "rms/silu/rope"],
  ["llama2_7b_hf", llama, "rms/silu/rope"],
  ["llama2_7b_chat_hf", llama, "rms/silu/rope"],
  ["llama2_13b_chat_hf", llama, "rms/silu/rope"],
  ["llama2_7b_chat.gguf", { "general.architecture": "llama" }, "rms/silu/rope interleaved"],
  ["llama2.c_15m", { "general.architecture": "llama" }, "rms/silu/rope interleaved"],
  ["llama2.c_110m", { "general.architecture": "llama" }, "rms/silu/rope interleaved"],
  ["gemma_2b_it", { model_type: "gemma" }, "rms/gelu_tanh/rope, embedding scaled, base 1"],
  [
    "minicpm_2b_dpo_bf16",
    { model_type: "minicpm" },
    "rms/silu/rope, embedding scaled, branches scaled, logits scaled",
  ],
  ["internlm_chat_20b", { model_type: "internlm" }, "rms/silu/rope"],
  ["orion_14b_chat", { model_type: "orion" }, "layer/silu/rope"],
  ["xverse_13b_chat", { model_type: "xverse" }, "rms/silu/rope"],
  ["mistral_7b_instruct_v0.2", { model_type: "mistral" }, "rms/silu/rope"],
  ["mistral_7b_instruct_v0.2.safetensors", { model_type: "mistral" }, "rms/silu/rope"],
  ["qwen1.5_0.5b_chat", qwen, "rms/silu/rope"],
  ["qwen1.5_7b_chat", qwen, "rms/silu/rope"],
  ["yi_6b_200k", llama, "rms/silu/rope"],
  ["yi_34b_chat", llama, "rms/silu/rope"],
  ["mixtral_8x7b_instruct_v0.1", { model_type: "mixtral" }, "rms/silu/rope, mixture"],
  ["opt_350m", { ...opt, do_layer_norm_before: false }, "layer/relu/learnt, norm of sums"],
  ["opt_13b", opt, "layer/relu/learnt"],
  ["opt_iml_max_30b", opt, "layer/relu/learnt"],
  [
    "phi_2",
    { model_type: "phi", hidden_act: "gelu_new" },
    "layer/gelu_new/rope, parallel, one norm, head bias",
  ],
];
