// The only door to a GPU. It opens an adapter's device with all that kernels can use, counts the buffers
// that are alive (destroying a device frees none of them), and notes the first thing that goes wrong, so that
// a step after it is an error and not a wrong number. Who gives the adapter is the caller's choice:
// Deno's own WebGPU by default, Dawn through the object that the npm package `webgpu` makes, a browser's.

import { BUFFER_USAGE, OFFSET_ALIGNMENT } from "./constants.ts";
import { type GpuProvider, probeCapabilities, requestDevice } from "./capabilities.ts";
import { failureOf, GpuFailure } from "./failure.ts";
import type { Capabilities } from "./kernel.ts";
import { createPipelines, type Pipelines } from "./pipelines.ts";
import { isMappedFirst } from "./readback.ts";

export type { GpuProvider };

/** Options of {@linkcode openGpu}. */
export interface GpuOptions {
  /** Who gives adapters; default: `navigator.gpu`. */
  readonly provider?: GpuProvider;
  /** Whether an adapter that computes on the CPU will do; default: yes. */
  readonly acceptSoftware?: boolean;
}

/** An open device. */
export interface Gpu {
  /** What it can do. */
  readonly capabilities: Capabilities;
  /** For encoding; buffers are made through this object. */
  readonly device: GPUDevice;
  /** Its compiled shaders. */
  readonly pipelines: Pipelines;
  /** Buffers and textures that were made and not destroyed. */
  readonly liveBuffers: number;
  /** Whether it can still be used. */
  readonly isLost: boolean;
  /** Makes a buffer; the size is rounded up so that every range in it may be bound whole. */
  createBuffer(label: string, bytes: number, usage: number): GPUBuffer;
  /** Frees a buffer of this device. */
  destroyBuffer(buffer: GPUBuffer): void;
  /** Makes a texture, which counts as a buffer does. */
  createTexture(descriptor: GPUTextureDescriptor): GPUTexture;
  /** Frees a texture of this device. */
  destroyTexture(texture: GPUTexture): void;
  /**
   * Makes buffers and waits for the device's word on them; frees those that were made when it fails.
   *
   * @throws {GpuFailure} `memory`, if the device has not enough.
   */
  allocate<T>(make: () => T): Promise<T>;
  /** @throws {GpuFailure} If the device is lost or has reported an error since the last call. */
  check(): void;
  /** Destroys the device and all its buffers. */
  dispose(): void;
}

/** What those need of a device who make things on it. */
export type GpuMemory = Pick<
  Gpu,
  | "device"
  | "capabilities"
  | "pipelines"
  | "createBuffer"
  | "destroyBuffer"
  | "createTexture"
  | "destroyTexture"
  | "allocate"
>;

/** Buffers that live and go together. */
export interface BufferScope extends GpuMemory {
  /** Destroys all that is left. */
  free(): void;
}

/** A view of a device that remembers the buffers and textures made through it. */
export function createBufferScope(gpu: Gpu): BufferScope {
  const { device, capabilities, pipelines, allocate } = gpu;
  const made = new Set<GPUBuffer>();
  const destroyBuffer = (buffer: GPUBuffer) => {
    made.delete(buffer);
    gpu.destroyBuffer(buffer);
  };
  const textures = new Set<GPUTexture>();
  const destroyTexture = (texture: GPUTexture) => {
    textures.delete(texture);
    gpu.destroyTexture(texture);
  };
  return {
    device,
    capabilities,
    pipelines,
    allocate,
    createBuffer(label, bytes, usage) {
      const buffer = gpu.createBuffer(label, bytes, usage);
      made.add(buffer);
      return buffer;
    },
    destroyBuffer,
    createTexture(descriptor) {
      const texture = gpu.createTexture(descriptor);
      textures.add(texture);
      return texture;
    },
    destroyTexture,
    free() {
      for (const buffer of [...made]) destroyBuffer(buffer);
      for (const texture of [...textures]) destroyTexture(texture);
    },
  };
}

/** Usage of everything that shaders read and write. */
export const STORAGE_USAGE = BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_DST | BUFFER_USAGE.COPY_SRC;

/**
 * Opens a device.
 *
 * @throws {GpuFailure} `no adapter`, if there is none.
 */
export async function openGpu(
  { provider = builtIn(), acceptSoftware = true }: GpuOptions = {},
): Promise<Gpu> {
  const adapter = await fastAdapter(provider);
  if (!provider || !adapter) throw new GpuFailure("no adapter", "this machine offers no GPU");
  const device = await requestDevice(adapter);
  const capabilities = await probeCapabilities(provider, { adapter, device });
  if (capabilities.isSoftware && !acceptSoftware) {
    device.destroy();
    throw new GpuFailure("no adapter", `${capabilities.adapter} computes on the CPU`);
  }
  return createGpu(device, capabilities);
}

/**
 * Providers that gave an adapter, kept until the process ends: Dawn goes on looking for events after the last use of
 * its object, and finds freed memory if that has been collected.
 */
const providers = new Set<GpuProvider>();

/** The fastest adapter of a provider, if there is one. */
export async function fastAdapter(provider: GpuProvider | undefined): Promise<GPUAdapter | null> {
  if (!provider) return null;
  providers.add(provider);
  return await provider.requestAdapter({ powerPreference: "high-performance" });
}

/** The provider of this runtime, if it has one. */
export function builtIn(): GpuProvider | undefined {
  return (navigator as Navigator & { readonly gpu?: GpuProvider }).gpu;
}

function createGpu(device: GPUDevice, capabilities: Capabilities): Gpu {
  const live = new Set<GPUBuffer | GPUTexture>();
  let failure: GpuFailure | undefined;
  let isLost = false;

  device.addEventListener("uncapturederror", (event) => {
    const { error } = event as GPUUncapturedErrorEvent;
    failure ??= failureOf(error);
  });
  device.lost.then(({ message, reason }) => {
    isLost = true;
    // Whatever else was reported came of it.
    failure = new GpuFailure("lost", message || `the device is gone (${reason ?? "unknown"})`);
  }).catch(() => {});

  function report(found: GpuFailure): void {
    failure ??= found;
    isLost ||= found.kind === "lost";
  }

  function createBuffer(label: string, bytes: number, usage: number): GPUBuffer {
    const size = Math.max(1, Math.ceil(bytes / OFFSET_ALIGNMENT)) * OFFSET_ALIGNMENT;
    if (size > capabilities.maxBufferBytes) {
      throw new GpuFailure(
        "memory",
        `${label} takes ${size} bytes, and a buffer has at most ${capabilities.maxBufferBytes}`,
      );
    }
    const mappedAtCreation = isMappedFirst({ size, usage });
    const buffer = device.createBuffer({ label, size, usage, mappedAtCreation });
    if (mappedAtCreation) buffer.unmap();
    live.add(buffer);
    return buffer;
  }

  function createTexture(descriptor: GPUTextureDescriptor): GPUTexture {
    const texture = device.createTexture(descriptor);
    live.add(texture);
    return texture;
  }

  function destroy(object: GPUBuffer | GPUTexture): void {
    if (live.delete(object)) object.destroy();
  }

  async function allocate<T>(make: () => T): Promise<T> {
    const before = new Set(live);
    device.pushErrorScope("validation");
    device.pushErrorScope("out-of-memory");
    let made: T | undefined;
    let thrown: { readonly error: unknown } | undefined;
    try {
      made = make();
    } catch (error) {
      thrown = { error };
    }
    const [memory, validation] = [device.popErrorScope(), device.popErrorScope()];
    // Others may make theirs while the device is waited for.
    const own = [...live].filter((object) => !before.has(object));
    const reported = await memory ?? await validation;
    if (!reported && !thrown) return made!;
    own.forEach(destroy);
    throw reported ? failureOf(reported) : thrown!.error;
  }

  return {
    capabilities,
    device,
    pipelines: createPipelines(device, { capabilities, report }),
    get liveBuffers() {
      return live.size;
    },
    get isLost() {
      return isLost;
    },
    createBuffer,
    destroyBuffer: destroy,
    createTexture,
    destroyTexture: destroy,
    allocate,
    check() {
      if (!failure) return;
      const found = failure;
      if (!isLost) failure = undefined;
      throw found;
    },
    dispose() {
      isLost = true;
      failure = new GpuFailure("lost", "the device has been disposed");
      for (const object of [...live]) destroy(object);
      device.destroy();
    },
  };
}
