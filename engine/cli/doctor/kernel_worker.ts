// A worker that checks a share of the kernels of a device (kernel_checks.ts): compiling their shaders is what takes the
// time on a GPU, and a thread compiles one after the other.

import type { Backend } from "../../run/backend.ts";
import { checkKernels, type KernelCheck } from "../../run/kernel_checks.ts";

/** What a worker is to check. */
export interface KernelShare {
  readonly device: "wasm" | "gpu";
  /** Who gives the GPU, as `openDawn` takes it: the giver itself stays in its thread. */
  readonly gpu: string | undefined;
  readonly threads: number | undefined;
  readonly seed: number | undefined;
  /** Only these ops; default: all. */
  readonly ops?: readonly string[] | undefined;
  readonly share: { readonly index: number; readonly of: number };
}

/** What a worker tells: what it is about to check, a check, the message of what ended it, or that all is done. */
export type KernelNews =
  | { readonly begins: string }
  | { readonly check: KernelCheck }
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

async function backendOf(
  device: "wasm" | "gpu",
  { gpu, threads }: Pick<KernelShare, "gpu" | "threads">,
): Promise<Backend> {
  if (device === "gpu") {
    const { createGpuBackend } = await import("../../run/gpu/backend.ts");
    const { openDawn } = await import("../../run/dawn.ts");
    return createGpuBackend({ provider: gpu === undefined ? undefined : await openDawn(gpu) });
  }
  const { createWasmBackend } = await import("../../run/wasm/backend.ts");
  return createWasmBackend(threads === undefined ? {} : { threads });
}

interface WorkerScope {
  onmessage: ((event: MessageEvent<KernelShare>) => void) | null;
  postMessage(message: KernelNews): void;
}

// The file is imported by who makes the workers, too.
if ("WorkerGlobalScope" in globalThis) {
  const scope = globalThis as unknown as WorkerScope;
  scope.onmessage = async ({ data }) => {
    try {
      const onBegin = (begins: string) => scope.postMessage({ begins });
      for await (const check of checkShare(data, onBegin)) scope.postMessage({ check });
      scope.postMessage("done");
    } catch (error) {
      scope.postMessage({ error: error instanceof Error ? error.message : String(error) });
    }
  };
}
