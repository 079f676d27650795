// Textures of four f32 a texel as WebGPU wants them described: how large one is for a virtual tensor, how its view and its
// place in a bind group follow from the WGSL type, and whether a device has textures of that size at all.

import { TEXTURE_USAGE } from "./constants.ts";
import type { Capabilities, GpuTexture } from "./kernel.ts";
import { isTexture, type VirtualTensor } from "./virtual_tensor.ts";

/** Bytes of four f32. */
const TEXEL_BYTES = 16;

/** What makes textures. */
export interface TextureMaker {
  readonly device: GPUDevice;
  createTexture(descriptor: GPUTextureDescriptor): GPUTexture;
}

/** What a bind group layout says of a texture of this WGSL type. */
export function textureEntry(type: string): Partial<GPUBindGroupLayoutEntry> {
  const viewDimension = dimensionOf(type);
  return type.startsWith("texture_storage_")
    ? { storageTexture: { format: "rgba32float", access: "write-only", viewDimension } }
    : { texture: { sampleType: "unfilterable-float", viewDimension } };
}

function dimensionOf(type: string): GPUTextureViewDimension {
  if (type.includes("_2d_array")) return "2d-array";
  return type.includes("_3d") ? "3d" : "2d";
}

/** Whether a device can have the tensor in its storage; buffers are judged where they are bound. */
export function fitsTexture(tensor: VirtualTensor, capabilities: Capabilities): boolean {
  if (!isTexture(tensor)) return true;
  const { maxTexture2d, maxTexture3d, maxTextureLayers } = capabilities;
  const [x, y, z] = tensor.extent;
  return tensor.storage === "texture_3d"
    ? Math.max(x, y, z) <= maxTexture3d
    : Math.max(x, y) <= maxTexture2d && z <= maxTextureLayers;
}

/** Bytes of the texture of a tensor. */
export function textureBytes({ extent: [x, y, z] }: VirtualTensor): number {
  return TEXEL_BYTES * x * y * z;
}

/**
 * Makes the texture of a tensor.
 *
 * @param texels What it holds, x fastest (packWeights); default: undefined contents.
 */
export function createTensorTexture(
  gpu: TextureMaker,
  { tensor, texels }: {
    readonly tensor: VirtualTensor;
    readonly texels?: Float32Array<ArrayBuffer> | undefined;
  },
): GpuTexture {
  const [width, height, depthOrArrayLayers] = tensor.extent;
  const size = { width, height, depthOrArrayLayers };
  const texture = gpu.createTexture({
    label: tensor.name,
    size,
    dimension: tensor.storage === "texture_3d" ? "3d" : "2d",
    format: "rgba32float",
    usage: TEXTURE_USAGE.TEXTURE_BINDING | TEXTURE_USAGE.STORAGE_BINDING | TEXTURE_USAGE.COPY_DST,
  });
  if (texels) {
    const layout = { bytesPerRow: TEXEL_BYTES * width, rowsPerImage: height };
    gpu.device.queue.writeTexture({ texture }, texels, layout, size);
  }
  const view = texture.createView({ dimension: dimensionOf(tensor.storage) });
  return { view, bytes: textureBytes(tensor) };
}
