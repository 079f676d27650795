// Inferflow's description of a model as a spec of ours: atoms for atoms, never by a model's name. Decoders and encoders
// are translated; the specs that are shipped build encoder-decoders. What the two forms cannot both say is an
// error that names the key, and so is a key that contradicts the file. Done right where upstream is not [§10]:
// the bias of the head is used, `rope_dim` holds for interleaved pairs too, epsilons are read from the config,
// `w3` and `w1n3` are different tensors, and the exact GELU has a word of its own (`gelu_exact`).

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { WeightFile } from "../../formats/source.ts";
import { renameTensors } from "../renamed.ts";
import type { NETWORK_KEYS } from "./keys.ts";
import { readInferflowSpec } from "./read.ts";
import { type NameOptions, resolveNames } from "./tensor_names.ts";

/** What comes out. */
export interface TranslatedSpec {
  /** For `resolveSpec`. */
  readonly json: Readonly<Record<string, unknown>>;
  /** One sentence each. */
  readonly warnings: readonly string[];
}

/** Values of `network_structure`, unchecked keys left out. */
export type Network = { readonly [K in keyof typeof NETWORK_KEYS]?: unknown };

interface Given {
  readonly network: Network;
  readonly isEncoder: boolean;
  /** Names in the file by standard name. */
  readonly names: ReadonlyMap<string, string>;
  /** Width of the feed-forward block as the file's tensors have it; some configs leave it out. */
  readonly inner: number | undefined;
  readonly file: string;
}

/**
 * Translates a spec for a file.
 *
 * @param json Parsed model_spec.json.
 * @param file Name of the spec, for messages.
 * @throws {FormatError} Naming the key. @throws {UnsupportedError} For what is not built.
 */
export function translateSpec(json: unknown, model: WeightFile, file: string): TranslatedSpec {
  const { top, network, warnings } = readInferflowSpec(json, file);
  checkFile(top, model, file);
  const kind = KINDS[String(network.type)];
  if (!kind) {
    throw new UnsupportedError(
      `"${network.type}" is not translated: only decoders and encoders are`,
      {
        file,
        place: "network_structure.type",
        remedy: "Leave the spec out: the model's own files say which built-in one it has",
      },
    );
  }
  const filled: Network = { ...kind.defaults, ...network };
  const renamed = renameTensors(model, renamesOf(network));
  const names = resolveNames({
    builtIn: kind.builtIn,
    prefix: String(network.tensor_name_prefix ?? ""),
    own: (network.tensor_name_mapping ?? {}) as Record<string, string>,
    tensors: renamed.tensors,
    file,
  });
  const isEncoder = kind.builtIn === "encoder_only";
  const given = { network: filled, isEncoder, names, inner: innerWidth(names, renamed), file };
  checkVocabulary(top, given, renamed);
  return { json: specOf(given), warnings };
}

interface Kind {
  readonly builtIn: NameOptions["builtIn"];
  readonly defaults: Network;
}

const LLAMA: Kind = {
  builtIn: "llama",
  defaults: {
    normalization_function: "rms",
    activation_function: "silu",
    position_embedding: "rope",
  },
};
const BLOOM: Kind = {
  builtIn: "bloom",
  defaults: {
    normalization_function: "std",
    activation_function: "gelu",
    position_embedding: "alibi",
  },
};
const ENCODER: Kind = { builtIn: "encoder_only", defaults: {} };
const DECODER: Kind = { builtIn: "decoder_only", defaults: {} };

const KINDS: Readonly<Record<string, Kind>> = {
  "transformer.decoder_only": DECODER,
  "transformer.decoder_only.sparse_moe": DECODER,
  "llama": LLAMA,
  "transformer.llama": LLAMA,
  "bloom": BLOOM,
  "transformer.bloom": BLOOM,
  "transformer.encoder_only": ENCODER,
  "bert": ENCODER,
};

function fail(file: string, key: string, message: string): never {
  throw new FormatError(message, { file, place: `network_structure.${key}` });
}

function refuse(file: string, key: string, message: string): never {
  throw new UnsupportedError(message, { file, place: `network_structure.${key}` });
}

const FORMATS: Readonly<Record<string, string>> = {
  pickle: "pickle",
  safetensors: "safetensors",
  gguf: "gguf",
  "llama2.c": "llama2c",
};

type Top = Readonly<Record<string, unknown>>;

function checkFile(top: Top, model: WeightFile, file: string): void {
  const format = top.model_file_format as string | undefined;
  if (format !== undefined && FORMATS[format] !== undefined && FORMATS[format] !== model.kind) {
    throw new FormatError(`is "${format}", and ${model.name} is ${model.kind}`, {
      file,
      place: "model_file_format",
    });
  }
  if (format === "ggml" || format === "std") {
    throw new UnsupportedError(`"${format}" is not read`, { file, place: "model_file_format" });
  }
  if (top.config_file && top.config_file !== "config.json") {
    throw new UnsupportedError(`is "${top.config_file}", and only config.json is read`, {
      file,
      place: "config_file",
    });
  }
  if (top.token_remap_file) {
    throw new UnsupportedError("is not built", { file, place: "token_remap_file" });
  }
}

function checkVocabulary(top: Top, { names, file }: Given, model: WeightFile): void {
  const table = names.get("dec.token_embeddings.weight");
  const rows = table === undefined ? undefined : model.tensors.get(table)?.shape[0];
  if (rows === undefined) {
    throw new FormatError("no tensor is mapped to dec.token_embeddings.weight", {
      file,
      place: "network_structure.tensor_name_mapping",
    });
  }
  for (const key of ["vocab_size", "input_vocab_size", "padded_vocab_size", "output_vocab_size"]) {
    const size = top[key];
    if (typeof size !== "number" || size <= rows) continue;
    throw new FormatError(`is ${size}, and the tensor ${table} has ${rows} rows`, {
      file,
      place: key,
    });
  }
}

function specOf(given: Given): Readonly<Record<string, unknown>> {
  const { network } = given;
  const isSparse = String(network.type).endsWith("sparse_moe");
  const renamed = renamesOf(network);
  const own = {
    renamed,
    hyperparameters: HYPERPARAMETERS,
    prefixes: [""],
    tensors: tensorsOf(given),
  };
  return {
    name: "inferflow",
    network: given.isEncoder ? "encoder" : "decoder",
    matches: { huggingface: [], gguf: [] },
    defaults: defaultsOf(given, isSparse),
    ...isSparse && { derived: { expertFeedForward: "feedForward" } },
    // Configs with this flag count their heads otherwise.
    cases: [{
      when: { multiQuery: true },
      absent: ["newDecoder"],
      use: {
        defaults: { kvHeads: 1 },
        names: { huggingface: { hyperparameters: { kvHeads: [] } } },
      },
    }],
    embedding: embeddingOf(given),
    norm: normOf(given),
    attention: attentionOf(given),
    feedForward: feedForwardOf(given, isSparse),
    ...residualOf(given),
    layer: layerOf(given),
    ...headOf(given),
    names: {
      huggingface: own,
      gguf: {
        renamed,
        prefixes: [""],
        tensors: own.tensors,
        expected: { "{arch}.expert_count": "any" },
      },
    },
  };
}

function innerWidth(names: Given["names"], { tensors }: WeightFile): number | undefined {
  const down = names.get(FFN("w2"));
  const layers = Array.from({ length: 8 }, (_, layer) => layer); // the first may be sparse
  const name = layers.map((layer) => down?.replace("{i}", `${layer}`) ?? "")
    .find((candidate) => tensors.has(candidate));
  return tensors.get(name ?? "")?.shape[1];
}

function renamesOf({ tensor_name_pre_mapping: map = {} }: Network): Record<string, string> {
  return map as Record<string, string>;
}

/** Names of config files that the common ones lack [§4.2]. */
const HYPERPARAMETERS = {
  layers: ["decoder_layers", "num_decoder_layers", "n_layer", "num_hidden_layers", "num_layers"],
  heads: ["decoder_attention_heads", "num_attention_heads", "num_heads", "n_head"],
  hidden: ["d_model", "n_embed", "n_embd", "hidden_size"],
  feedForward: ["intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "decoder_ffn_dim"],
  embeddingDim: ["word_embed_proj_dim"],
  multiQuery: ["multi_query"],
  tokenTypes: ["type_vocab_size"],
  newDecoder: ["new_decoder_architecture"],
  vocabulary: ["padded_vocab_size", "vocab_size"],
  expertFeedForward: ["moe_intermediate_size"],
};

function defaultsOf({ network, inner, file }: Given, isSparse: boolean): Record<string, unknown> {
  const dim = Number(network.rope_dim ?? -1);
  const { using_expert_count: used, expert_count: experts, moe_layer_end: end } = network;
  if (isSparse && used !== undefined && used !== experts) {
    refuse(file, "using_expert_count", `is ${used}, and only all ${experts} experts are built`);
  }
  if (isSparse && end !== undefined && Number(end) >= 0) {
    refuse(file, "moe_layer_end", `is ${end}, and only layers from moe_layer_start on are built`);
  }
  return {
    normEpsilon: 1e-5,
    context: 1024,
    tokenTypes: 2,
    ...inner !== undefined && { feedForward: inner },
    ropeTheta: network.rope_theta ?? 10000,
    ...dim > 0 && { ropeDim: dim },
    ...network.partial_rotary_factor !== undefined && {
      ropeFraction: network.partial_rotary_factor,
    },
    ...isSparse && {
      experts,
      expertsUsed: network.moe_top_k,
      expertNormalize: network.moe_norm_top_k_prob ?? true,
      denseLayers: network.moe_layer_start ?? 0,
    },
  };
}

function embeddingOf({ network, names, file }: Given): Record<string, unknown> {
  const scale = Number(network.embedding_linear_scale ?? 0);
  const position = network.position_embedding ?? "";
  if (position === "sinusoidal" || position === "sinusoidal2") {
    refuse(file, "position_embedding", `"${position}" is not translated for decoders`);
  }
  const positions = names.has("dec.pos_embeddings.weight");
  return {
    scale: network.has_embedding_linear_norm !== true ? 1 : scale === 0 ? { hidden: 0.5 } : scale,
    ...positions && { positions: { offset: network.pos_embedding_offset ?? 0 } },
    ...names.has("dec.input_norm.weight") && { norm: "embedding_norm" },
    ...names.has("dec.token_type_embeddings.weight") && { types: true },
    ...names.has("input_transform.weight") && { projection: true },
  };
}

function normOf({ network, file }: Given): Record<string, unknown> {
  const { normalization_function: kind = "std" } = network;
  if (kind === "linear") {
    refuse(file, "normalization_function", '"linear" is built for the embedding only');
  }
  const bases = [network.attn_pre_norm_base, network.ffn_pre_norm_base, network.output_norm_base]
    .map((base) => Number(base ?? 0));
  if (bases.some((base) => base !== bases[0])) {
    refuse(file, "attn_pre_norm_base", `and the others differ (${bases}): only one base is built`);
  }
  if (kind === "std" && bases[0] !== 0) {
    fail(file, "attn_pre_norm_base", `is ${bases[0]}: a base belongs to rms norms`);
  }
  return kind === "std"
    ? { kind: "layer", bias: "present" }
    : { kind: "rms", base: bases[0], bias: "present" };
}

function attentionOf({ network, file }: Given): Record<string, unknown> {
  const position = network.position_embedding ?? "";
  const order = network.qk_column_order ?? 0;
  if (order !== 0 && order !== 1 && order !== 2) {
    fail(file, "qk_column_order", `is ${order}: it is 0, 1 or 2`);
  }
  const kind = position === "rope"
    ? { theta: "ropeTheta", scaling: "ropeScaling" }
    : position === "alibi"
    ? { alibi: "scaled" }
    : {};
  return {
    bias: "present",
    outputBias: "present",
    ropeStyle: order === 2 ? "half" : "interleaved",
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

function feedForwardOf({ network, names, file }: Given, isSparse: boolean): unknown {
  const word = String(network.activation_function ?? "gelu");
  const activation = ACTIVATIONS[word];
  if (activation === undefined) {
    refuse(file, "activation_function", `"${word}" is not built`);
  }
  if (!isSparse) {
    const isGated = word === "glu_silu" || names.has(FFN("w3")) || names.has(FFN("w1n3"));
    return { kind: isGated ? "gated" : "plain", activation, bias: "present" };
  }
  const hasShared = names.has("dec.{i}.moe.shared_expert.w1.weight");
  if (hasShared !== (network.has_shared_expert ?? false)) {
    fail(
      file,
      "has_shared_expert",
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
    dense: "gated",
    ...hasShared && { shared: { inner: "sharedExperts * expertFeedForward", gated: false } },
  };
}

const FFN = (part: string) => `dec.{i}.feed_forward.${part}.weight`;

function residualOf({ network, file }: Given): Record<string, unknown> {
  const { attn_out_scale: attention = 1, ffn_out_scale: feedForward = 1 } = network;
  if (attention !== feedForward) {
    refuse(
      file,
      "attn_out_scale",
      `is ${attention} and ffn_out_scale ${feedForward}: only one factor for both is built`,
    );
  }
  return attention === 1 ? {} : { residual: attention };
}

function layerOf({ network, names, file }: Given): unknown[] {
  const norm = (block: string, kind: string) => names.has(`dec.{i}.${block}.${kind}_norm.weight`);
  const isParallel = network.is_parallel_attn === true;
  const sharesInput = network.mlp_attn_share_input === true;
  if (isParallel && sharesInput) {
    fail(file, "is_parallel_attn", "and mlp_attn_share_input exclude each other");
  }
  const before = norm("self_attn", "pre") && network.use_self_attn_pre_norm !== false
    ? { before: "attention_norm" }
    : {};
  const own = norm("feed_forward", "pre");
  const post = norm("self_attn", "post");
  const isOfSum = network.is_attn_post_as_residual !== false;
  if (post && (isParallel || sharesInput)) {
    fail(file, "tensor_name_mapping", "has a norm between two blocks that are side by side");
  }
  if (post && !isOfSum && own) {
    fail(
      file,
      "is_attn_post_as_residual",
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
    {
      block: "feedForward",
      ...read,
      ...norm("feed_forward", "post") && { sum: "feed_forward_post_norm" },
    },
  ];
}

function headOf({ network, isEncoder, names }: Given): Record<string, unknown> {
  if (isEncoder) {
    if (!names.has(TRANSFORM)) return {};
    return { head: { norm: false, bias: "present", transform: { norm: "transform_norm" } } };
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

/** Roles by standard name; `w1` and the fused ones depend on others. */
const ROLES: Readonly<Record<string, string>> = {
  "dec.token_embeddings": "embedding",
  "dec.pos_embeddings": "positions",
  "dec.token_type_embeddings": "token_types",
  "dec.input_norm": "embedding_norm",
  "dec.output_norm": "output_norm",
  "output": "head",
  "input_transform": "embedding_in",
  "output_transform": "embedding_out",
  "dec.{i}.self_attn.pre_norm": "attention_norm",
  "dec.{i}.self_attn.post_norm": "attention_post_norm",
  "dec.{i}.self_attn.wq": "query",
  "dec.{i}.self_attn.wk": "key",
  "dec.{i}.self_attn.wv": "value",
  "dec.{i}.self_attn.wo": "attention_output",
  "dec.{i}.feed_forward.pre_norm": "feed_forward_norm",
  "dec.{i}.feed_forward.post_norm": "feed_forward_post_norm",
  "dec.{i}.feed_forward.w2": "down",
  "dec.{i}.feed_forward.w3": "up",
  "dec.{i}.moe.gate": "router",
  "dec.{i}.moe.expert.{j}.w1": "experts_gate",
  "dec.{i}.moe.expert.{j}.w2": "experts_down",
  "dec.{i}.moe.expert.{j}.w3": "experts_up",
  "dec.{i}.moe.shared_expert.w1": "shared_gate",
  "dec.{i}.moe.shared_expert.w2": "shared_down",
  "dec.{i}.moe.shared_expert.w3": "shared_up",
};

const TRANSFORM = "output_transform.weight";

/** Roles that differ in encoders: what is in front of the head is a block there. */
const ENCODER_ROLES: Readonly<Record<string, string>> = {
  "output_transform": "transform",
  "output_transform.post_norm": "transform_norm",
};

function tensorsOf({ network, isEncoder, names, file }: Given): Record<string, unknown> {
  const tensors: Record<string, unknown> = {};
  for (const [standard, name] of names) {
    const [, base, part] = /^(.*)\.(weight|bias)$/.exec(standard) ?? [];
    const suffix = part === "bias" ? "_bias" : "";
    const role = (isEncoder ? ENCODER_ROLES[base ?? ""] : undefined) ?? ROLES[base ?? ""];
    if (role !== undefined) {
      const stacked = standard.includes("{j}");
      tensors[role + suffix] = stacked ? { name, stack: "experts" } : name;
    } else if (base === "dec.{i}.self_attn.qkv") {
      Object.assign(tensors, fusedAttention(name, suffix, network, file));
    } else if (base === "dec.{i}.feed_forward.w1n3" || base === "dec.{i}.feed_forward.w1") {
      const isFused = base.endsWith("w1n3") || network.activation_function === "glu_silu";
      Object.assign(
        tensors,
        isFused ? fusedGate(name, suffix) : {
          [(names.has(FFN("w3")) ? "gate" : "up") + suffix]: name,
        },
      );
    } else {
      fail(file, "tensor_name_mapping", `"${standard}" is no standard name of a tensor`);
    }
  }
  return tensors;
}

function fusedAttention(
  name: string,
  suffix: string,
  { qkv_format: format = 0 }: Network,
  file: string,
): Record<string, unknown> {
  if (format !== 0 && format !== 1) fail(file, "qkv_format", `is ${format}: it is 0 or 1`);
  const [query, groups] = format === 0 ? ["heads // kvHeads", "kvHeads"] : ["heads", "1"];
  const [key, stride] = format === 0
    ? ["headDim", "(heads // kvHeads + 2) * headDim"]
    : ["kvHeads * headDim", "(heads + 2 * kvHeads) * headDim"];
  const width = `${query} * headDim`;
  const rule = (start: string, count: string) => ({ name, rows: { start, count, groups, stride } });
  return {
    [`query${suffix}`]: rule("0", width),
    [`key${suffix}`]: rule(width, key),
    [`value${suffix}`]: rule(`${width} + ${key}`, key),
  };
}

function fusedGate(name: string, suffix: string): Record<string, unknown> {
  const rule = (start: string) => ({
    name,
    rows: { start, count: "feedForward", stride: "2 * feedForward" },
  });
  return { [`gate${suffix}`]: rule("0"), [`up${suffix}`]: rule("feedForward") };
}
