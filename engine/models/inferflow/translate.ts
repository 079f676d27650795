// Inferflow's description of a model as a spec of ours: atoms for atoms, never by a model's name. Decoders, encoders
// and encoder-decoders are translated. What the two forms cannot both say is an error that names the key, and so is a key that contradicts the file. Done right where upstream is not [§10]:
// the bias of the head is used, `rope_dim` holds for interleaved pairs too, epsilons are read from the config,
// `w3` and `w1n3` are different tensors, and the exact GELU has a word of its own (`gelu_exact`).

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { WeightFile } from "../../formats/source.ts";
import { renameTensors } from "../renamed.ts";
import {
  attentionOf,
  embeddingOf,
  encoderOf,
  feedForwardOf,
  headOf,
  layerOf,
  normOf,
  residualOf,
} from "./blocks.ts";
import { FFN, type Given, type Network, refuse } from "./given.ts";
import { readInferflowSpec } from "./read.ts";
import { tensorsOf } from "./tensor_roles.ts";
import { type NameOptions, resolveNames } from "./tensor_names.ts";

/** What comes out. */
export interface TranslatedSpec {
  /** For `resolveSpec`. */
  readonly json: Readonly<Record<string, unknown>>;
  /** One sentence each. */
  readonly warnings: readonly string[];
  /** Name of the algorithm that cuts texts; empty for the tokenizer's own. */
  readonly tokenization: string;
}

/**
 * Translates a spec for a file.
 *
 * @param json Parsed model_spec.json.
 * @param file Name of the spec, for messages.
 * @throws {FormatError} Naming the key. @throws {UnsupportedError} For what is not built.
 */
export function translateSpec(
  json: unknown,
  { model, file }: { readonly model: WeightFile; readonly file: string },
): TranslatedSpec {
  const { top, network, warnings } = readInferflowSpec(json, file);
  checkFile(top, model, file);
  const kind = KINDS[String(network.type)];
  if (!kind) {
    throw new UnsupportedError(
      `"${network.type}" is not translated: it does not say which halves there are`,
      {
        file,
        place: "network_structure.type",
        remedy: `Say one of ${Object.keys(KINDS).join(", ")}`,
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
  const { isEncoder, hasSource } = halvesOf(network.type);
  const inner = innerWidth(names, renamed);
  const given = { network: filled, isEncoder, hasSource, names, inner, file };
  checkVocabulary(top, given, renamed);
  const tokenization = String(top.tokenization_algorithm ?? "");
  return { json: specOf(given), warnings, tokenization };
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
const BOTH: Kind = { builtIn: "encoder_decoder", defaults: {} };

const KINDS: Readonly<Record<string, Kind>> = {
  "transformer.decoder_only": DECODER,
  "transformer.decoder_only.sparse_moe": DECODER,
  "llama": LLAMA,
  "transformer.llama": LLAMA,
  "bloom": BLOOM,
  "transformer.bloom": BLOOM,
  "transformer": BOTH,
  "transformer.encoder_decoder": BOTH,
  "transformer.encoder_only": ENCODER,
  "bert": ENCODER,
};

const FORMATS: Readonly<Record<string, string>> = {
  pickle: "pickle",
  safetensors: "safetensors",
  gguf: "gguf",
  "llama2.c": "llama2c",
};

/** Which halves a network of that type has: an encoder alone, one in front of a decoder, or neither. */
export function halvesOf(
  type: unknown,
): { readonly isEncoder: boolean; readonly hasSource: boolean } {
  const builtIn = KINDS[String(type)]?.builtIn;
  return { isEncoder: builtIn === "encoder_only", hasSource: builtIn === "encoder_decoder" };
}

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
    throw new UnsupportedError(`is "${top.token_remap_file}", and ids are not remapped`, {
      file,
      place: "token_remap_file",
      remedy: "Put a tokenizer.json with the model's own ids beside the weights",
    });
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
    hyperparameters: { ...HYPERPARAMETERS, ...given.hasSource && SOURCE_HYPERPARAMETERS },
    prefixes: [""],
    tensors: tensorsOf(given),
    harmless: { "the form itself says how embeddings are scaled": ["scale_embedding"] },
    ...given.hasSource && { ignored: SOURCE_IGNORED },
  };
  return {
    name: "inferflow",
    network: given.isEncoder ? "encoder" : given.hasSource ? "encoder-decoder" : "decoder",
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
    ...encoderOf(given),
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

/** Of encoders in front of decoders. */
const SOURCE_HYPERPARAMETERS = {
  encoderLayers: ["encoder_layers", "num_encoder_layers"],
  encoderHeads: ["encoder_attention_heads"],
  encoderFeedForward: ["encoder_ffn_dim"],
  feedForward: ["decoder_ffn_dim", ...HYPERPARAMETERS.feedForward],
};

/** Further names of the one table, and what such files hold of positions. */
const SOURCE_IGNORED = ["embed_tokens.weight", "embed_positions.weights", "final_logits_bias"];

function defaultsOf({ network, inner, file }: Given, isSparse: boolean): Record<string, unknown> {
  const dim = Number(network.rope_dim ?? -1);
  const { using_expert_count: used, expert_count: experts, moe_layer_end: end } = network;
  if (isSparse && used !== undefined && used !== experts) {
    refuse(
      { file, key: "using_expert_count" },
      `is ${used}, and only all ${experts} experts are built`,
    );
  }
  if (isSparse && end !== undefined && Number(end) >= 0) {
    refuse(
      { file, key: "moe_layer_end" },
      `is ${end}, and only layers from moe_layer_start on are built`,
    );
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
