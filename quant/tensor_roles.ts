// What a tensor is for, told by its name: GGUF's names and those of Hugging Face checkpoints. A policy
// chooses formats by role; a name that no row knows is "other", and is treated as any matrix.
// The table is for choosing formats only: building a network goes by the specs of the families.

/**
 * What a tensor does in a model.
 * @category Number formats
 */
export type TensorRole =
  | "embedding"
  | "output"
  | "attention_q"
  | "attention_k"
  | "attention_v"
  | "attention_qkv"
  | "attention_output"
  | "ffn_gate"
  | "ffn_up"
  | "ffn_down"
  | "router"
  | "norm"
  | "bias"
  | "table"
  | "other";

/** All roles. */
export const TENSOR_ROLES: readonly TensorRole[] = [
  ...["embedding", "output", "attention_q", "attention_k", "attention_v"] as const,
  ...["attention_qkv", "attention_output", "ffn_gate", "ffn_up", "ffn_down"] as const,
  ...["router", "norm", "bias", "table", "other"] as const,
];

// The first that matches. Tables are looked up or added, never multiplied by: positions, rotations, masks.
const NAMES: readonly (readonly [RegExp, TensorRole])[] = [
  [/bias$|\.b$|_b$/, "bias"],
  [/norm|(^|\.)ln_|layer_?norm|\.ln\d|gamma$|beta$/i, "norm"],
  [/position|pos_emb|token_type|rope_|rotary|inv_freq|relative_attention|attn_rel_b/i, "table"],
  [/ssm_|time_mix|shortconv|conv1d|\.A_log$|\.D$/, "table"],
  [/ffn_gate_inp|\.router\.|mlp\.gate\.weight$|block_sparse_moe\.gate\./, "router"],
  [/^output\.weight$|lm_head|^cls\.|embed_out\.weight$|output_layer\.weight$/, "output"],
  [/token_embd|embed_tokens|word_embeddings|\bwte\.|tok_embeddings|^shared\./, "embedding"],
  [/attn_qkv|qkv_proj|query_key_value|c_attn|\bWqkv\b|in_proj/, "attention_qkv"],
  [/attn_q|q_proj|\.query\.|SelfAttention\.q\.|attention\.wq/, "attention_q"],
  [/attn_k|k_proj|\.key\.|SelfAttention\.k\.|attention\.wk/, "attention_k"],
  [/attn_v|v_proj|\.value\.|SelfAttention\.v\.|attention\.wv/, "attention_v"],
  [
    /attn_output|o_proj|attn\.(out_proj|c_proj|dense)|attention\.(output\.)?(dense|wo)|SelfAttention\.o\./,
    "attention_output",
  ],
  [/ffn_gate|gate_proj|\.w1\.|wi_0/, "ffn_gate"],
  [/ffn_down|down_proj|\.w2\.|dense_4h_to_h|mlp\.c_proj|output\.dense|fc2|\.wo\./, "ffn_down"],
  [/ffn_up|up_proj|\.w3\.|dense_h_to_4h|mlp\.c_fc|intermediate\.dense|fc1|wi_1|\.wi\./, "ffn_up"],
];

/** The role of a tensor; a vector that is neither norm nor bias by its name is a "table". */
export function roleOf(name: string, shape: readonly number[]): TensorRole {
  const role = NAMES.find(([pattern]) => pattern.test(name))?.[1] ?? "other";
  return role === "other" && shape.length < 2 ? "table" : role;
}

/** Number of the layer in a tensor's name, or undefined. */
export function layerOf(name: string): number | undefined {
  const found = /(?:^|\.)(?:blk|layers?|h|blocks?|enc\.blk|dec\.blk)\.(\d+)\./.exec(name);
  return found ? Number(found[1]) : undefined;
}
