// What a device can do, found out once and kept as plain data. Everything is a question to the device: its
// features and limits, or whether a shader compiles. Nothing is concluded from the name of a provider.

import type { Capabilities } from "./kernel.ts";

/**
 * What gives adapters: `navigator.gpu`, the object of the npm package `webgpu`, a browser's.
 * @category Models
 */
export interface GpuProvider {
  /** As `navigator.gpu` has it. */
  requestAdapter(options?: GPURequestAdapterOptions): Promise<GPUAdapter | null>;
  /** Extensions of the language; absent: none. */
  readonly wgslLanguageFeatures?: { has(name: string): boolean };
  /**
   * What it is, and of which version: what was found out about its adapters is found out again under another one. Absent:
   * as what its adapters say of themselves.
   */
  readonly version?: string;
  /**
   * Whether its pipelines are there sooner when each is waited for: Dawn's threads hold up each other, and whoever looks for
   * what they have made. Absent: no.
   */
  readonly compilesInTurn?: boolean;
  /** Most rows of a decoder's step where nobody says how many (`LoadOptions.batch`). Absent: 512. */
  readonly rowsOfStep?: number;
}

/** Features that are used where they are to be had. */
const SUBGROUP_MATRIX = "chromium-experimental-subgroup-matrix";
const WANTED = ["shader-f16", "timestamp-query", SUBGROUP_MATRIX];
/** Limits of which a device is to have as much as its adapter. */
const LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
] as const;

/** Matrices that a device multiplies: M × K by K × N. */
interface MatrixConfig {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}

/** A device with everything that its adapter has and kernels can use. */
export async function requestDevice(adapter: GPUAdapter): Promise<GPUDevice> {
  const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
  const listed = WANTED.filter((name) => hasFeature(adapter, name)) as GPUFeatureName[];
  const request = (requiredFeatures: GPUFeatureName[]) =>
    adapter.requestDevice({ requiredFeatures, requiredLimits });
  try {
    // Deno's adapter grants subgroups without listing them.
    return await request([...listed, "subgroups" as GPUFeatureName]);
  } catch {
    return await request(listed);
  }
}

/** Whether there is a feature, also one that the types of a platform do not know. */
function hasFeature({ features }: GPUAdapter | GPUDevice, name: string): boolean {
  return features.has(name as GPUFeatureName);
}

/** Whether an adapter computes on the CPU. */
export function isSoftware(adapter: GPUAdapter): boolean {
  return (adapter.info as { readonly isFallbackAdapter?: boolean }).isFallbackAdapter ?? false;
}

/** Asks a device and its adapter. */
export async function probeCapabilities(
  provider: GpuProvider,
  { adapter, device }: { readonly adapter: GPUAdapter; readonly device: GPUDevice },
): Promise<Capabilities> {
  const { features, limits } = device;
  const info = adapter.info as GPUAdapterInfo & {
    readonly subgroupMinSize?: number;
    readonly subgroupMaxSize?: number;
    readonly subgroupMatrixConfigs?: Iterable<MatrixConfig>;
  };
  const plain = await compiles(device, SUBGROUPS);
  const enabled = !plain && await compiles(device, `enable subgroups;\n${SUBGROUPS}`);
  const { subgroupMinSize = 0, subgroupMaxSize = -1 } = info;
  const isKnownSize = subgroupMinSize === subgroupMaxSize && subgroupMinSize > 1;
  const f16 = features.has("shader-f16");
  const offersMatrix = f16 && enabled && isKnownSize &&
    hasFeature(device, SUBGROUP_MATRIX) && [...info.subgroupMatrixConfigs ?? []]
    .some(({ componentType, resultComponentType, M, N, K }) =>
      componentType === "f16" && resultComponentType === "f32" && M === 16 && N === 16 && K === 16
    );
  return Object.freeze({
    f16,
    subgroupSize: (plain || enabled) && isKnownSize ? subgroupMinSize : 0,
    subgroupsNeedEnable: enabled,
    packedDot: provider.wgslLanguageFeatures?.has("packed_4x8_integer_dot_product") ?? false,
    subgroupMatrix: offersMatrix && await compiles(device, MATRIX),
    compilesInTurn: provider.compilesInTurn ?? false,
    timestamp: features.has("timestamp-query"),
    maxBindingBytes: limits.maxStorageBufferBindingSize,
    maxBufferBytes: limits.maxBufferSize,
    maxWorkgroupBytes: limits.maxComputeWorkgroupStorageSize,
    maxWorkgroupSize: limits.maxComputeInvocationsPerWorkgroup,
    maxStorageBindings: limits.maxStorageBuffersPerShaderStage,
    maxTexture2d: limits.maxTextureDimension2D,
    maxTexture3d: limits.maxTextureDimension3D,
    maxTextureLayers: limits.maxTextureArrayLayers,
    isSoftware: isSoftware(adapter),
    adapter: adapterName(info),
  });
}

/** A card's name stands in `description` (wgpu), or in `device` beside the driver's version (Dawn). */
function adapterName({ description, device, vendor, architecture }: GPUAdapterInfo): string {
  const isName = /[a-z]/i.test(device) && !/^0x/.test(device) && !description.includes(device);
  return [description, isName ? device : ""].filter((text) => text).join(", ") ||
    [vendor, architecture].find((text) => text) || "unnamed adapter";
}

const SUBGROUPS = `@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
  y[i] = subgroupAdd(y[i]);
}`;

// The experiment has been spelled in several ways.
const MATRIX = `enable f16;
enable chromium_experimental_subgroup_matrix;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<vec4<f16>, 64>;
@compute @workgroup_size(64) fn main() {
  let left = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile, 0u, 4u);
  let right = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&tile, 0u, 4u);
  let none = subgroup_matrix_result<f32, 16, 16>();
  let sum = subgroupMatrixMultiplyAccumulate(left, right, none);
  subgroupMatrixStore<row_major>(&y, 0u, sum, 16u);
}`;

async function compiles(device: GPUDevice, code: string): Promise<boolean> {
  device.pushErrorScope("validation");
  try {
    const module = device.createShaderModule({ code });
    device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: "main" } });
  } catch {
    await device.popErrorScope();
    return false;
  }
  return await device.popErrorScope() === null;
}
