// A file of CLIP ViT-B/32 in its published shapes (Radford et al., 2021) with random float16 weights, in no memory: what
// is read is made while it is read.

import type { ByteSource } from "../../engine/byte_source.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../../engine/formats/source.ts";

const TEXT = { layers: 12, hidden: 512, inner: 2048 };
const PICTURE = { layers: 12, hidden: 768, inner: 3072 };
const VOCABULARY = 49408, PLACES = 77, PATCH = 32, SIDE = 7, WIDTH = 512;

/** Codes of float16 from 2^-6 to 2^-5, either sign. */
const NOISE: ByteSource = {
  name: "noise",
  size: Number.MAX_SAFE_INTEGER,
  readInto(offset, target) {
    let state = 1 + offset;
    for (let i = 0; i < target.length; i++) {
      state = (state * 1103515245 + 12345) % 2 ** 31;
      target[i] = (offset + i) % 2 === 0 ? state >> 16 : 0x24 | state >> 16 & 0x83;
    }
    return Promise.resolve();
  },
  close() {},
};

/** Names and shapes of a stack of layers. */
function layersOf(
  prefix: string,
  { layers, hidden, inner }: typeof TEXT,
): [name: string, shape: number[]][] {
  const square = ["q_proj", "k_proj", "v_proj", "out_proj"].map((name) => `self_attn.${name}`);
  return Array.from({ length: layers }, (_, i) => `${prefix}.encoder.layers.${i}`)
    .flatMap((path): [string, number[]][] => [
      ...square.flatMap((name): [string, number[]][] => [
        [`${path}.${name}.weight`, [hidden, hidden]],
        [`${path}.${name}.bias`, [hidden]],
      ]),
      ...["layer_norm1", "layer_norm2"].flatMap((name) => normOf(`${path}.${name}`, hidden)),
      [`${path}.mlp.fc1.weight`, [inner, hidden]],
      [`${path}.mlp.fc1.bias`, [inner]],
      [`${path}.mlp.fc2.weight`, [hidden, inner]],
      [`${path}.mlp.fc2.bias`, [hidden]],
    ]);
}

function normOf(name: string, hidden: number): [string, number[]][] {
  return [[`${name}.weight`, [hidden]], [`${name}.bias`, [hidden]]];
}

/** The file: texts and pictures. */
export function clipFile(): WeightFile {
  const { hidden } = PICTURE;
  const shapes: [string, number[]][] = [
    ["text_model.embeddings.token_embedding.weight", [VOCABULARY, TEXT.hidden]],
    ["text_model.embeddings.position_embedding.weight", [PLACES, TEXT.hidden]],
    ...layersOf("text_model", TEXT),
    ...normOf("text_model.final_layer_norm", TEXT.hidden),
    ["text_projection.weight", [WIDTH, TEXT.hidden]],
    ["vision_model.embeddings.class_embedding", [hidden]],
    ["vision_model.embeddings.patch_embedding.weight", [hidden, 3, PATCH, PATCH]],
    ["vision_model.embeddings.position_embedding.weight", [1 + SIDE * SIDE, hidden]],
    ...normOf("vision_model.pre_layrnorm", hidden),
    ...layersOf("vision_model", PICTURE),
    ...normOf("vision_model.post_layernorm", hidden),
    ["visual_projection.weight", [WIDTH, hidden]],
    ["logit_scale", []],
  ];
  const tensors = new Map(shapes.map(([name, shape]): [string, TensorInfo] => {
    const byteLength = 2 * shape.reduce((a, b) => a * b, 1);
    return [name, { name, shape, format: "F16", source: NOISE, offset: 0, byteLength }];
  }));
  const metadata = new Map<string, MetadataValue>([
    ["model_type", "clip"],
    ["text_config", { model_type: "clip_text_model", eos_token_id: VOCABULARY - 1 }],
    ["vision_config", { model_type: "clip_vision_model" }],
  ]);
  return { kind: "safetensors", name: "CLIP ViT-B/32", metadata, tensors, close: () => {} };
}

/** Ids of a text of so many tokens. */
export function textOf(length: number): number[] {
  const words = Array.from({ length: length - 2 }, (_, i) => 320 + 97 * i % 40000);
  return [VOCABULARY - 2, ...words, VOCABULARY - 1];
}
