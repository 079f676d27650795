// Textures of a plan (spec TL-16). They cannot lie in the arena, since WebGPU lets no texture share a buffer's memory, so
// each is an object of its own and its bytes are charged beside the arena. Textures of activations belong to a node while
// it runs, and nodes that ask for the same size get the same one; those of weights are filled when they are made.

import type { GpuTexture } from "../../../gpu/kernel.ts";
import { createTensorTexture, textureBytes, type TextureMaker } from "../../../gpu/textures.ts";
import type { VirtualTensor } from "../../../gpu/virtual_tensor.ts";
import type { Value } from "../../graph/graph.ts";

/** What a texture holds before the first step. */
export interface TextureContents {
  /** Whose elements they are: the texture is made once for each value and name of a tensor. */
  readonly value: Value;
  /** x fastest. */
  texels(): Float32Array<ArrayBuffer>;
}

/** The textures that lowerings ask for, made at first sight. */
export interface GpuTextures {
  /** Bytes of weights. */
  readonly weightBytes: number;
  /** Bytes of activations. */
  readonly activationBytes: number;
  /**
   * The texture of a tensor.
   *
   * @param number Counts the textures of a node.
   */
  texture(tensor: VirtualTensor, number: number, contents?: TextureContents): GpuTexture;
}

/**
 * No textures yet.
 *
 * @param gpu Absent: bytes are counted and nothing is made.
 */
export function createGpuTextures(gpu: TextureMaker | undefined): GpuTextures {
  const made = new Map<string, GpuTexture>();
  let weightBytes = 0, activationBytes = 0;
  return {
    get weightBytes() {
      return weightBytes;
    },
    get activationBytes() {
      return activationBytes;
    },
    texture(tensor, number, contents) {
      const owner = contents ? `value ${contents.value.id} ${tensor.name}` : `number ${number}`;
      const key = [owner, tensor.storage, ...tensor.extent].join(" ");
      const known = made.get(key);
      if (known) return known;
      const bytes = textureBytes(tensor);
      if (contents) weightBytes += bytes;
      else activationBytes += bytes;
      const texture = gpu
        ? createTensorTexture(gpu, { tensor, texels: contents?.texels() })
        : { view: undefined as unknown as GPUTextureView, bytes };
      made.set(key, texture);
      return texture;
    },
  };
}
