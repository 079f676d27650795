// The places where a model can be computed, and what passes may ask of each. Code of a device is loaded
// when it is chosen, so that a script that uses one of them does not start with all.

import type { GpuProvider } from "../../gpu/capabilities.ts";
import { freeMemory, mayHaveGpu } from "../io.ts";
import type { Backend, DeviceName } from "./backend.ts";
import { paceOf, type PriorityOptions } from "./pacer.ts";
import { DEVICE_FACTS, type DeviceFacts } from "./device_facts.ts";
import { answersOf, type KernelAnswers, type KernelWish } from "./kernel_choice.ts";
import type { StreamOptions } from "./streaming/slots.ts";
import type { WasmArena } from "./wasm/arena.ts";

/** A device made ready. */
export interface Device extends DeviceFacts, KernelAnswers {
  readonly backend: Backend;
  /** Whether one of some ops has a kernel here, or on what computes the rest beside the device. */
  computesAny(ops: readonly string[]): Promise<boolean>;
  /** What is to be said about the choice; one sentence. */
  readonly note?: string;
  /** The device to take when this one, which was chosen automatically, cannot run a model. */
  fallback?(reason: string): Promise<Device>;
}

/** Options of devices. */
export interface DeviceOptions {
  readonly threads?: number | undefined;
  /** Kernels that must not be used, by name. */
  readonly excludeKernels?: readonly string[] | undefined;
  /** Of device wasm: executables without states share one machine. */
  readonly shared?: boolean | undefined;
  /** Of device wasm: all executables share one machine, those with states too. */
  readonly together?: boolean | undefined;
  /** Of device wasm: where executables without states keep their activations. */
  readonly arena?: WasmArena | undefined;
  /** Of device wasm: measure time by kernel (`PreparedPlan.profile`). */
  readonly profile?: boolean | undefined;
  /** Of device wasm: most bytes of one WASM memory. */
  readonly memoryBytes?: number | undefined;
  /** Whether weights are streamed (run/streaming/slots.ts). */
  readonly stream?: boolean | Partial<StreamOptions> | undefined;
  /** Most bytes that a model may take of the host's memory. */
  readonly maxHostBytes?: number | undefined;
  /** Who gives the adapter of device gpu; default: `navigator.gpu`. */
  readonly gpu?: GpuProvider | undefined;
  /** Of device gpu. */
  readonly stepsAhead?: number | undefined;
  /** Of device gpu: positions in whose multiples the sizes of a step change. */
  readonly padTo?: number | undefined;
  /** Of device gpu: whether kernels are tried before they are used; default true. */
  readonly selfTest?: boolean | undefined;
  /** Where what self-tests and `troodon tune` found is kept; default: the user's cache folder. */
  readonly cacheDir?: string | undefined;
  /** How urgent the work is. */
  readonly priority?: PriorityOptions["priority"];
  readonly maxSubmitMs?: number | undefined;
  /** Of device gpu: looks at what every node makes. */
  readonly debug?: boolean | undefined;
}

type Opened =
  & KernelAnswers
  & Pick<Device, "backend" | "computesAny">
  & Partial<Pick<DeviceFacts, "rowsOfStep">>;

const OPENERS: Readonly<Record<DeviceName, (options: DeviceOptions) => Promise<Opened>>> = {
  // The reference rounds what wasm rounds, so that "fast" means the same on both.
  reference: async () => {
    const answers = await answersOfWasm({});
    const { createReferenceBackend } = await import("./reference/reference_backend.ts");
    return { ...answers, backend: createReferenceBackend() };
  },
  wasm: async ({ threads, profile = false, shared = false, together = false, ...more }) => {
    const answers = await answersOfWasm(wishOf(more));
    const { createWasmBackend } = await import("./wasm/backend.ts");
    const backend = createWasmBackend({
      profile,
      shared,
      together,
      ...threads !== undefined && { threads },
      ...more.arena && { arena: more.arena },
      ...more.memoryBytes !== undefined && { memoryBytes: more.memoryBytes },
      ...{ stream: more.stream, maxHostBytes: more.maxHostBytes, maxSubmitMs: paceOf(more) },
      // Of a model that is alone on its device.
      ...!shared && !together && { freeBytes: freeMemory() },
    });
    const { tuned } = await import("./tuning/table.ts");
    const { tuningOfWasm } = await import("./tuning/devices.ts");
    return { ...answers, backend: tuned(backend, () => tuningOfWasm(more.cacheDir)) };
  },
  gpu: async ({ gpu, stepsAhead, padTo, debug = false, threads, ...rest }) => {
    const { cacheDir, selfTest = true, ...more } = rest;
    // Together: each by itself is a wait of its own.
    const [
      { createGpuBackend },
      { GPU_KERNELS, LEAST_GPU },
      { besideHost },
      { selfTested },
      { tuned },
      { tuningOfGpu },
    ] = await Promise.all([
      import("./gpu/backend.ts"),
      import("./gpu/kernel_table.ts"),
      import("./parts/beside.ts"),
      import("./gpu/self_tests.ts"),
      import("./tuning/table.ts"),
      import("./tuning/devices.ts"),
    ]);
    const wish = wishOf(more);
    const answers = answersOf(GPU_KERNELS, LEAST_GPU, wish);
    let host: Promise<Opened> | undefined;
    const { priority, maxSubmitMs } = more;
    const device = createGpuBackend({
      provider: gpu,
      maxSubmitMs: paceOf(more),
      warmUp: true,
      debug,
      ...stepsAhead !== undefined && { stepsAhead },
      ...{ ...padTo !== undefined && { padTo }, stream: more.stream },
    });
    const joined = besideHost(
      device,
      async () =>
        (await (host ??= OPENERS.wasm({ threads, shared: true, priority, maxSubmitMs }))).backend,
    );
    const tested = selfTest ? selfTested(joined, { provider: gpu, cacheDir }) : joined;
    return {
      backend: tuned(tested, tuningOfGpu(gpu, cacheDir)),
      ...answers,
      ...gpu?.rowsOfStep !== undefined && { rowsOfStep: gpu.rowsOfStep },
      // Models of a spec do not ask, and need no table of WASM.
      computesAny: async (ops) =>
        ops.some(answers.hasKernel) || await (await answersOfWasm(wish)).computesAny(ops),
    };
  },
};

function wishOf({ excludeKernels }: DeviceOptions): KernelWish {
  return { excludeKernels: new Set(excludeKernels) };
}

async function answersOfWasm(wish: KernelWish): Promise<Omit<Opened, "backend">> {
  const { LEAST_WASM, WASM_KERNELS } = await import("./wasm/kernel_table.ts");
  const answers = answersOf(WASM_KERNELS, LEAST_WASM, wish);
  return { ...answers, computesAny: (ops) => Promise.resolve(ops.some(answers.hasKernel)) };
}

/**
 * The device that is meant. `auto` is the GPU where there is one that is none of the CPU's disguises, and
 * wasm elsewhere.
 */
export async function openDevice(
  name: "auto" | DeviceName,
  options: DeviceOptions,
): Promise<Device> {
  if (name !== "auto") return await open(name, options);
  // Its code first: meanwhile the driver is loaded (driver.ts).
  const code = options.gpu || mayHaveGpu() ? await open("gpu", options) : undefined;
  if (!code || !await hasGpu(options)) {
    const device = await open("wasm", options);
    // Who brought a WebGPU expects it to be used.
    const note = "computed on the CPU, because the WebGPU that was given has no GPU";
    return options.gpu ? { ...device, note } : device;
  }
  return {
    ...code,
    fallback: async (reason) => ({
      ...await open("wasm", options),
      note: `computed on the CPU, because the GPU cannot run this model: ${reason}`,
    }),
  };
}

async function open(name: DeviceName, options: DeviceOptions): Promise<Device> {
  const { backend, ...answers } = await OPENERS[name](options);
  return {
    ...DEVICE_FACTS[name],
    ...answers,
    backend: without(backend, wishOf(options)),
  };
}

/** The backend without some of its kernels. */
function without(backend: Backend, wish: KernelWish): Backend {
  return {
    ...backend,
    prepare: (plan, options) => backend.prepare(plan, { ...wish, ...options }),
  };
}

/** Whether there is an adapter that does not compute on the CPU. */
export async function hasGpu({ gpu }: DeviceOptions): Promise<boolean> {
  if (!gpu && !mayHaveGpu()) return false;
  const { isSoftware } = await import("../../gpu/capabilities.ts");
  const { builtIn, fastAdapter } = await import("../../gpu/gpu.ts");
  const adapter = await fastAdapter(gpu ?? builtIn()).catch(() => null);
  return adapter !== null && !isSoftware(adapter);
}
