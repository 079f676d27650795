// The places where a model can be computed, and what passes may ask of each. Code of a device is loaded
// when it is chosen, so that a script that uses one of them does not start with all.

import { type GpuProvider, isSoftware } from "../../gpu/capabilities.ts";
import { builtIn, fastAdapter } from "../../gpu/gpu.ts";
import type { NodeDraft } from "../plan/passes/pass.ts";
import { hasKernel, type KernelWish, takesDraft } from "./kernel_choice.ts";
import { mayHaveGpu } from "../io.ts";
import type { Backend, DeviceName, KvFormat } from "./backend.ts";
import type { WasmArena } from "./wasm/arena.ts";

/** A device made ready. */
export interface Device {
  readonly backend: Backend;
  /** What is to be said about the choice; one sentence. */
  readonly note?: string;
  /** The device to take when this one, which was chosen automatically, cannot run a model. */
  fallback?(reason: string): Promise<Device>;
  /** Whether wanted rows are to be picked before the last products (`PassContext`). */
  readonly picksRowsEarly?: boolean;
  /** Number formats that keys and values may have; absent: all. */
  readonly kvFormats?: readonly KvFormat[];
  /** Whether an op has a kernel, for whatever nodes. */
  hasKernel(op: string): boolean;
  /** Whether there is a kernel for a node that a pass would make. */
  takes(node: NodeDraft): boolean;
}

/** Options of devices. */
export interface DeviceOptions {
  readonly threads?: number | undefined;
  /** Kernels that must not be used, by name. */
  readonly excludeKernels?: readonly string[] | undefined;
  /** Of device wasm: executables without states share one machine. */
  readonly shared?: boolean | undefined;
  /** Of device wasm: where executables without states keep their activations. */
  readonly arena?: WasmArena | undefined;
  /** Of device wasm: measure time by kernel (`PreparedPlan.profile`). */
  readonly profile?: boolean | undefined;
  /** Of device wasm: most bytes of one WASM memory. */
  readonly memoryBytes?: number | undefined;
  /** Who gives the adapter of device gpu; default: `navigator.gpu`. */
  readonly gpu?: GpuProvider | undefined;
  /** Of device gpu. */
  readonly stepsAhead?: number | undefined;
  /** Of device gpu: positions in whose multiples the sizes of a step change. */
  readonly padTo?: number | undefined;
  /** Of device gpu: looks at what every node makes. */
  readonly debug?: boolean | undefined;
}

/** What passes may ask about a device's kernels. */
function kernelsOf(device: DeviceName, wish?: KernelWish): Pick<Device, "hasKernel" | "takes"> {
  return {
    hasKernel: (op) => hasKernel(op, device, wish),
    takes: (draft) => takesDraft(draft, device, wish),
  };
}

const OPENERS: Readonly<Record<DeviceName, (options: DeviceOptions) => Promise<Device>>> = {
  // The reference rounds what wasm rounds, so that "fast" means the same on both.
  reference: async () => {
    const { createReferenceBackend } = await import("./reference/reference_backend.ts");
    return { backend: createReferenceBackend(), picksRowsEarly: true, ...kernelsOf("wasm") };
  },
  wasm: async ({ threads, excludeKernels = [], profile = false, shared = false, ...more }) => {
    const { createWasmBackend } = await import("./wasm/backend.ts");
    return {
      backend: createWasmBackend({
        profile,
        shared,
        ...threads !== undefined && { threads },
        ...more.arena && { arena: more.arena },
        ...more.memoryBytes !== undefined && { memoryBytes: more.memoryBytes },
      }),
      picksRowsEarly: true,
      ...kernelsOf("wasm", { excludeKernels: new Set(excludeKernels) }),
    };
  },
  gpu: async ({ gpu, stepsAhead, padTo, debug = false, threads, excludeKernels = [] }) => {
    const { createGpuBackend } = await import("./gpu/backend.ts");
    const { besideHost } = await import("./parts/beside.ts");
    let host: Promise<Device> | undefined;
    return {
      backend: besideHost(
        createGpuBackend({
          provider: gpu,
          warmUp: true,
          debug,
          ...stepsAhead !== undefined && { stepsAhead },
          ...padTo !== undefined && { padTo },
        }),
        async () => (await (host ??= OPENERS.wasm({ threads, shared: true }))).backend,
      ),
      kvFormats: ["F16", "F32"],
      ...kernelsOf("gpu", { excludeKernels: new Set(excludeKernels) }),
    };
  },
};

/**
 * The device that is meant. `auto` is the GPU where there is one that is none of the CPU's disguises, and
 * wasm elsewhere.
 */
export async function openDevice(
  name: "auto" | DeviceName,
  options: DeviceOptions,
): Promise<Device> {
  if (name !== "auto") return await OPENERS[name](options);
  if (!await hasGpu(options)) return await OPENERS.wasm(options);
  return {
    ...await OPENERS.gpu(options),
    fallback: async (reason) => ({
      ...await OPENERS.wasm(options),
      note: `computed on the CPU, because the GPU cannot run this model: ${reason}`,
    }),
  };
}

/** Whether there is an adapter that does not compute on the CPU. */
export async function hasGpu({ gpu }: DeviceOptions): Promise<boolean> {
  if (!gpu && !mayHaveGpu()) return false;
  const adapter = await fastAdapter(gpu ?? builtIn()).catch(() => null);
  return adapter !== null && !isSoftware(adapter);
}
