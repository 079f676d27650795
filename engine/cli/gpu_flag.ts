// `--gpu`: who gives the GPU. Deno's own WebGPU is the default.

import type { GpuProvider } from "../../gpu/capabilities.ts";
import { UsageError } from "./args.ts";

/** The flag, among others. */
export interface GpuFlag {
  readonly gpu?: string | undefined;
  readonly device?: string | undefined;
}

/**
 * Another giver than Deno that the flag names.
 *
 * @throws {UsageError} If the device is none that it speaks of.
 */
export function otherGpu({ gpu, device = "auto" }: GpuFlag): string | undefined {
  if (gpu === undefined || gpu === "built-in") return undefined;
  if (device === "auto" || device === "gpu") return gpu;
  throw new UsageError(`--gpu ${gpu} does not go with --device ${device}`);
}

/** Devices whose kernels are looked at: the one that was asked for, or all that promise speed here. */
export async function devicesOf(
  asked: "wasm" | "gpu" | undefined,
  options: { readonly gpu?: GpuProvider | undefined },
): Promise<("wasm" | "gpu")[]> {
  if (asked) return [asked];
  const { hasGpu } = await import("../run/devices.ts");
  return await hasGpu(options) ? ["wasm", "gpu"] : ["wasm"];
}

/**
 * The option of `load` that the flag asks for.
 *
 * @throws {UsageError} If the device is none that it speaks of.
 * @throws {SourceError} If the file is not there.
 * @throws {UnsupportedError} If Dawn cannot be had.
 */
export async function gpuOption(flags: GpuFlag): Promise<{ readonly gpu?: GpuProvider }> {
  const gpu = otherGpu(flags);
  if (gpu === undefined) return {};
  const { openDawn } = await import("../run/dawn.ts");
  return { gpu: await openDawn(gpu) };
}
