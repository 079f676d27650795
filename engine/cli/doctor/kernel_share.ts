// A share of the checks of a device's kernels (kernel_checks.ts), and the timing of some (kernel_speed.ts), as orders that
// can be sent to a process (kernel_process.ts), and what it tells.

import type { Backend } from "../../run/backend.ts";
import type { GpuBackend } from "../../run/gpu/backend.ts";
import type { KernelSpeed } from "../../run/gpu/kernel_speed.ts";
import { checkKernels, type KernelCheck } from "../../run/kernel_checks.ts";

/** What a process is to check. */
export interface KernelShare {
  readonly device: "wasm" | "gpu";
  /** Who gives the GPU, as `openDawn` takes it: the giver itself stays in its process. */
  readonly gpu: string | undefined;
  readonly threads: number | undefined;
  readonly seed: number | undefined;
  /** Only these ops; default: all. */
  readonly ops?: readonly string[] | undefined;
  readonly share: { readonly index: number; readonly of: number };
}

/** What a process is to time: kernels by name. */
export interface KernelTiming extends Pick<KernelShare, "gpu"> {
  readonly timed: readonly string[];
}

/** What a process tells: a kernel that it begins with, what came of it, the message of what ended it, or that all is done. */
export type KernelNews =
  | { readonly begins: string }
  | { readonly check: KernelCheck }
  | { readonly speed: KernelSpeed }
  | { readonly error: string }
  | "done";

/** Checks a share; `onBegin` hears the name of a kernel before each of its checks. */
export async function* checkShare(
  { device, gpu, threads, seed, ops, share }: KernelShare,
  onBegin?: (kernel: string) => void,
): AsyncGenerator<KernelCheck> {
  const backend = await backendOf(device, { gpu, threads });
  yield* checkKernels(backend, {
    share,
    ...{ ...seed !== undefined && { seed }, ...ops && { ops }, ...onBegin && { onBegin } },
  });
}

/** Times kernels. */
export async function* timeThese(
  { gpu, timed }: KernelTiming,
  onBegin?: (kernel: string) => void,
): AsyncGenerator<KernelSpeed> {
  const { timeKernels } = await import("../../run/gpu/kernel_speed.ts");
  const wanted = (name: string) => timed.includes(name);
  yield* timeKernels(await gpuBackendOf(gpu), { wanted, onBegin });
}

async function gpuBackendOf(gpu: string | undefined): Promise<GpuBackend> {
  const { createGpuBackend } = await import("../../run/gpu/backend.ts");
  const { openDawn } = await import("../../run/dawn.ts");
  return createGpuBackend({ provider: gpu === undefined ? undefined : await openDawn(gpu) });
}

async function backendOf(
  device: "wasm" | "gpu",
  { gpu, threads }: Pick<KernelShare, "gpu" | "threads">,
): Promise<Backend> {
  if (device === "gpu") return await gpuBackendOf(gpu);
  const { createWasmBackend } = await import("../../run/wasm/backend.ts");
  return createWasmBackend(threads === undefined ? {} : { threads });
}
