// The encoder of pictures and the projector of a GGUF model, in a file beside it (llama.cpp's mmproj; names and keys of its
// tools/mtmd/clip-impl.h). It is seen as the checkpoint that it was converted from, so that the same specs build it; what
// the converter changed, a spec of sight says in `gguf`.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../../formats/source.ts";
import { OBJECT } from "../../record.ts";
import { joinFrames } from "../derived_tensors/frames.ts";
import { openModel } from "../open_model.ts";
import type { SightSpec } from "./sight_spec.ts";
import { specOfProjector } from "./specs/mod.ts";

/** A mmproj file as the checkpoint that it was. */
export interface OpenedProjector {
  readonly spec: SightSpec;
  /** Tower and projector. */
  readonly tower: WeightFile;
  /** Config of the whole model, as far as the file has it. */
  readonly metadata: WeightFile["metadata"];
  /** What a preprocessor_config.json would say. */
  readonly processor: Readonly<Record<string, unknown>>;
}

/** Keys of a tower's config by those of the file. */
const CONFIG: Readonly<Record<string, string>> = {
  hidden_size: "clip.vision.embedding_length",
  intermediate_size: "clip.vision.feed_forward_length",
  num_hidden_layers: "clip.vision.block_count",
  num_attention_heads: "clip.vision.attention.head_count",
  layer_norm_eps: "clip.vision.attention.layer_norm_epsilon",
  image_size: "clip.vision.image_size",
  patch_size: "clip.vision.patch_size",
};

/** Names of a tower of CLIP or SigLIP; `{i}` is the layer. */
const NAMES: Readonly<Record<string, string>> = {
  "v.patch_embd.": "vision_model.embeddings.patch_embedding.",
  "v.position_embd.": "vision_model.embeddings.position_embedding.",
  "v.class_embd": "vision_model.embeddings.class_embedding",
  "v.pre_ln.": "vision_model.pre_layrnorm.",
  "v.post_ln.": "vision_model.post_layernorm.",
  "v.blk.{i}.attn_q.": "vision_model.encoder.layers.{i}.self_attn.q_proj.",
  "v.blk.{i}.attn_k.": "vision_model.encoder.layers.{i}.self_attn.k_proj.",
  "v.blk.{i}.attn_v.": "vision_model.encoder.layers.{i}.self_attn.v_proj.",
  "v.blk.{i}.attn_out.": "vision_model.encoder.layers.{i}.self_attn.out_proj.",
  "v.blk.{i}.ln1.": "vision_model.encoder.layers.{i}.layer_norm1.",
  "v.blk.{i}.ln2.": "vision_model.encoder.layers.{i}.layer_norm2.",
  "v.blk.{i}.ffn_up.": "vision_model.encoder.layers.{i}.mlp.fc1.",
  "v.blk.{i}.ffn_down.": "vision_model.encoder.layers.{i}.mlp.fc2.",
};

/**
 * Opens a mmproj file.
 *
 * @throws {FormatError} If it is none. @throws {UnsupportedError} If its projector is not built.
 */
export async function openMmproj(path: string): Promise<OpenedProjector> {
  const file = await openModel(path);
  try {
    const { metadata } = file;
    if (![...metadata.keys()].some((key) => key.startsWith("clip.vision."))) {
      throw new FormatError("is no mmproj file", {
        file: path,
        place: "clip.vision.*",
        remedy: "Give the file whose name begins with mmproj, of the same model",
      });
    }
    const type = metadata.get("clip.vision.projector_type") ?? metadata.get("clip.projector_type");
    const spec = specOfProjector(String(type ?? "mlp"));
    if (!spec?.gguf) {
      throw new UnsupportedError(`projector "${type}" is not built`, {
        file: path,
        place: "clip.projector_type",
        remedy: "Use the model's safetensors folder, if its family is built",
      });
    }
    const { names = {}, config = {}, every = {}, processor } = spec.gguf;
    const entries = Object.entries({ ...CONFIG, ...config }).flatMap(([key, from]) => {
      const value = typeof from === "string" ? metadata.get(from) : from as MetadataValue;
      return value === undefined ? [] : [[key, value] as const];
    });
    const values = new Map<string, MetadataValue>([
      ...entries,
      ...Object.entries(every).map(([key, from]) => [key, eachNth(metadata, from)] as const),
      ["hidden_act", activationOf(metadata)],
      ["model_type", spec.tower.type],
    ]);
    return {
      spec,
      tower: {
        ...file,
        ...{ kind: "safetensors", container: "gguf", metadata: values },
        tensors: renamed(file.tensors, { ...NAMES, ...names }),
      },
      metadata: values,
      processor: processorOf(processor, metadata),
    };
  } catch (error) {
    file.close();
    throw error;
  }
}

function activationOf(metadata: WeightFile["metadata"]): string {
  if (metadata.get("clip.use_gelu") === true) return "gelu_pytorch_tanh";
  return metadata.get("clip.use_silu") === true ? "silu" : "quick_gelu";
}

/** Indices of each n-th of the file's layers. */
function eachNth(metadata: WeightFile["metadata"], key: string): MetadataValue {
  const layers = Number(metadata.get("clip.vision.block_count")),
    n = Number(metadata.get(key) || 1);
  return Array.from({ length: Math.floor(layers / n) }, (_, i) => (i + 1) * n - 1);
}

const FRAME = "v.patch_embd.weight", SECOND_FRAME = "v.patch_embd.weight.1";

function renamed(
  stored: ReadonlyMap<string, TensorInfo>,
  names: Readonly<Record<string, string>>,
): Map<string, TensorInfo> {
  const tensors = new Map(stored),
    [frame, second] = [FRAME, SECOND_FRAME].map((one) => tensors.get(one));
  if (frame && second) {
    tensors.set(FRAME, joinFrames([frame, second]));
    tensors.delete(SECOND_FRAME);
  }
  const rules = Object.entries(names).map(([from, to]): [RegExp, string] => [
    new RegExp(`^${from.replaceAll(".", "\\.").replace("{i}", "(\\d+)")}`),
    to.replace("{i}", "$1"),
  ]);
  const found = new Map<string, TensorInfo>();
  for (const [name, tensor] of tensors) {
    const rule = rules.find(([pattern]) => pattern.test(name));
    found.set(rule ? name.replace(...rule) : name, tensor);
  }
  return withFeedForward(found);
}

/** Older converters called the wider matrix of a feed-forward block `down`; its shape tells. */
function withFeedForward(tensors: Map<string, TensorInfo>): Map<string, TensorInfo> {
  for (const [name, first] of [...tensors]) {
    if (!name.endsWith("mlp.fc1.weight")) continue;
    const other = name.replace("fc1", "fc2"), second = tensors.get(other);
    if (!second || first.shape[0]! >= first.shape[1]!) continue;
    for (const part of ["weight", "bias"]) {
      const [a, b] = [name, other].map((one) => one.replace(/weight$/, part)) as [string, string];
      const [one, two] = [tensors.get(a), tensors.get(b)];
      if (!one || !two) continue;
      tensors.set(a, two).set(b, one);
    }
  }
  return tensors;
}

/** A record of a spec whose texts beginning with `clip.` are keys of the file; of a list the first that is there counts. */
function processorOf(
  rule: Readonly<Record<string, unknown>>,
  metadata: WeightFile["metadata"],
): Record<string, unknown> {
  const valueOf = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(valueOf).find((one) => one !== undefined);
    if (OBJECT.accepts(value)) return processorOf(value, metadata);
    if (typeof value !== "string" || !value.startsWith("clip.")) return value;
    const found = metadata.get(value);
    return ArrayBuffer.isView(found) ? Array.from(found as Float32Array) : found;
  };
  return Object.fromEntries(Object.entries(rule).map(([key, value]) => [key, valueOf(value)]));
}
