// The atoms of blocks: norm, positions, attention, feed-forward, residuals and head, from Inferflow's keys.

import { fail, FFN, type Given, refuse, TRANSFORM } from "./given.ts";

/** What happens to tokens before the first layer. */
export function embeddingOf({ network, names }: Given): Record<string, unknown> {
  const position = String(network.position_embedding ?? "");
  const isSinusoidal = position === "sinusoidal" || position === "sinusoidal2";
  const isScaled = network.has_embedding_linear_norm === true ||
    (isSinusoidal && network.linear_norm_before_sinusoidal !== false);
  const scale = Number(network.embedding_linear_scale ?? 0);
  const offset = network.pos_embedding_offset ?? 0;
  return {
    scale: !isScaled ? 1 : scale === 0 ? { hidden: 0.5 } : scale,
    ...isSinusoidal && {
      sinusoidal: { offset, frequencies: position === "sinusoidal" ? "fairseq" : "plain" },
    },
    ...names.has("dec.pos_embeddings.weight") && { positions: { offset } },
    ...names.has("dec.input_norm.weight") && { norm: "embedding_norm" },
    ...names.has("dec.token_type_embeddings.weight") && { types: true },
    ...names.has("input_transform.weight") && { projection: true },
  };
}

/** The norm. */
export function normOf({ network, file }: Given): Record<string, unknown> {
  const { normalization_function: kind = "std" } = network;
  if (kind === "linear") {
    refuse({ file, key: "normalization_function" }, '"linear" is built for the embedding only');
  }
  const bases = [network.attn_pre_norm_base, network.ffn_pre_norm_base, network.output_norm_base]
    .map((base) => Number(base ?? 0));
  if (bases.some((base) => base !== bases[0])) {
    refuse(
      { file, key: "attn_pre_norm_base" },
      `and the others differ (${bases}): only one base is built`,
    );
  }
  if (kind === "std" && bases[0] !== 0) {
    fail({ file, key: "attn_pre_norm_base" }, `is ${bases[0]}: a base belongs to rms norms`);
  }
  return kind === "std"
    ? { kind: "layer", bias: "present" }
    : { kind: "rms", base: bases[0], bias: "present" };
}

/** Attention. */
export function attentionOf({ network, file }: Given): Record<string, unknown> {
  const position = network.position_embedding ?? "";
  const order = network.qk_column_order ?? 0;
  if (order !== 0 && order !== 1 && order !== 2) {
    fail({ file, key: "qk_column_order" }, `is ${order}: it is 0, 1 or 2`);
  }
  const kind = position === "rope"
    ? { theta: "ropeTheta", scaling: "ropeScaling" }
    : position === "alibi"
    ? { alibi: "scaled" }
    : {};
  return {
    bias: "present",
    outputBias: "present",
    ...position === "rope" && { ropeStyle: order === 2 ? "half" : "interleaved" },
    kinds: { full: kind },
    pattern: { rule: "uniform", kind: "full" },
  };
}

const ACTIVATIONS: Readonly<Record<string, string>> = {
  silu: "silu",
  glu_silu: "silu",
  gelu: "gelu_tanh",
  gelu_exact: "gelu",
  relu: "relu",
  sigmoid: "sigmoid",
};

/** The feed-forward block, dense or a mixture. */
export function feedForwardOf({ network, names, file }: Given, isSparse: boolean): unknown {
  const word = String(network.activation_function ?? "gelu");
  const activation = ACTIVATIONS[word];
  if (activation === undefined) {
    refuse({ file, key: "activation_function" }, `"${word}" is not built`);
  }
  if (!isSparse) {
    const isGated = word === "glu_silu" || names.has(FFN("w3")) || names.has(FFN("w1n3"));
    return { kind: isGated ? "gated" : "plain", activation, bias: "present" };
  }
  const hasShared = names.has("dec.{i}.moe.shared_expert.w1.weight");
  if (hasShared !== (network.has_shared_expert ?? false)) {
    fail(
      { file, key: "has_shared_expert" },
      hasShared
        ? "is not true, and tensors of a shared expert are mapped"
        : "is true, and no tensor of a shared expert is mapped",
    );
  }
  const bias = names.has("dec.{i}.moe.gate.bias") ? "required" : "none";
  return {
    kind: "mixture",
    activation,
    bias: "none",
    router: { score: "softmax", bias },
    ...hasShared && { shared: { inner: "sharedExperts * expertFeedForward", gated: false } },
  };
}

/** Factor on what blocks add. */
export function residualOf({ network, file }: Given): Record<string, unknown> {
  const { attn_out_scale: attention = 1, ffn_out_scale: feedForward = 1 } = network;
  if (attention !== feedForward) {
    refuse(
      { file, key: "attn_out_scale" },
      `is ${attention} and ffn_out_scale ${feedForward}: only one factor for both is built`,
    );
  }
  return attention === 1 ? {} : { residual: attention };
}

/** Order and norms of the blocks of a layer, of the decoder's stack or of the encoder in front of it. */
export function layerOf(given: Given, stack: "dec" | "enc" = "dec"): unknown[] {
  const { network, names, file } = given;
  const norm = (block: string, kind: string) =>
    names.has(`${stack}.{i}.${block}.${kind}_norm.weight`);
  const isParallel = network.is_parallel_attn === true;
  const sharesInput = network.mlp_attn_share_input === true;
  if (isParallel && sharesInput) {
    fail({ file, key: "is_parallel_attn" }, "and mlp_attn_share_input exclude each other");
  }
  const before = norm("self_attn", "pre") && network.use_self_attn_pre_norm !== false
    ? { before: "attention_norm" }
    : {};
  const own = norm("feed_forward", "pre");
  const post = norm("self_attn", "post");
  const isOfSum = network.is_attn_post_as_residual !== false;
  if (post && (isParallel || sharesInput)) {
    fail(
      { file, key: "tensor_name_mapping" },
      "has a norm between two blocks that are side by side",
    );
  }
  if (post && !isOfSum && own) {
    fail(
      { file, key: "is_attn_post_as_residual" },
      "is false, and the feed-forward block has a norm already",
    );
  }
  const read = isParallel
    ? { ...before, from: "layer" }
    : own
    ? { before: "feed_forward_norm", ...sharesInput && { from: "layer" } }
    : post && !isOfSum
    ? { before: "attention_post_norm" }
    : sharesInput
    ? { from: "layer" }
    : {};
  return [
    { block: "attention", ...before, ...post && isOfSum && { sum: "attention_post_norm" } },
    ...given.hasSource && stack === "dec" ? [crossOf(given)] : [],
    {
      block: "feedForward",
      ...read,
      ...norm("feed_forward", "post") && { sum: "feed_forward_post_norm" },
    },
  ];
}

/** Attention of a decoder to its source. */
function crossOf({ names }: Given): unknown {
  const has = (kind: string) => names.has(`dec.{i}.cross_attn.${kind}_norm.weight`);
  return {
    block: "cross",
    ...has("pre") && { before: "cross_norm" },
    ...has("post") && { sum: "cross_post_norm" },
  };
}

/** The encoder in front of a decoder. */
export function encoderOf(given: Given): Record<string, unknown> {
  if (!given.hasSource) return {};
  const norm = given.names.has("enc.output_norm.weight") ? { norm: "output_norm" } : {};
  return { encoder: { layer: layerOf(given, "enc"), ...norm } };
}

/** What happens behind the last layer. */
export function headOf({ network, isEncoder, names }: Given): Record<string, unknown> {
  if (isEncoder) {
    if (!names.has(TRANSFORM)) return {};
    return { head: { bias: "present", transform: { norm: "transform_norm" } } };
  }
  const { out_scale: scale = 1 } = network;
  const head = {
    bias: "present",
    ...!names.has("dec.output_norm.weight") && { norm: false },
    ...network.normalize_lm_head === true && { unitRows: true },
    ...names.has("output_transform.weight") && { projection: true },
    // Upstream puts it in front of the norm, which undoes it; the models that have it put it behind.
    ...scale !== 1 && { scale },
  };
  return { head };
}
