// The devices that can be measured, and the tables that plans on them are made with.

import type { GpuProvider } from "../../../gpu/capabilities.ts";
import type { KernelStorages } from "../../../gpu/storage_choice.ts";
import { probeCapabilities } from "../../../wasm/probe.ts";
import type { Node } from "../../graph/graph.ts";
import type { TunedDevice } from "./measure.ts";
import { readTunings, type Tuning, tuningName } from "./table.ts";

/** Storages of convolutions that are tried beside a device's own and plain buffers. */
const STORAGES: readonly KernelStorages[] = [
  { conv: { source: "texture_2d_array", weights: "texture_2d", target: "planes" } },
  { conv: { source: "texture_2d", weights: "texture_2d", target: "planes" } },
  { conv: { source: "texture_3d", weights: "buffer", target: "planes" } },
  { conv: { source: "buffer", weights: "buffer", target: "planes" } },
];

/** A device to measure, by the name of its table. */
export interface NamedDevice extends TunedDevice {
  readonly name: string;
}

/** What WASM is on this machine. */
function wasmName(): string {
  return tuningName(
    `wasm, ${probeCapabilities().simd}, ${navigator.hardwareConcurrency} processors`,
  );
}

function gpuName(adapter: string, provider: GpuProvider | undefined): string {
  return tuningName(provider ? `${adapter}, of another WebGPU` : adapter);
}

/** Opens one. @throws {DeviceError} If there is no such device. */
export async function openTunedDevice(
  device: "wasm" | "gpu",
  { provider, threads }: {
    readonly provider?: GpuProvider | undefined;
    readonly threads?: number | undefined;
  } = {},
): Promise<NamedDevice> {
  return device === "wasm" ? await openWasm(threads) : await openGpu(provider);
}

async function openWasm(threads = navigator.hardwareConcurrency): Promise<NamedDevice> {
  const { WASM_KERNELS } = await import("../wasm/kernel_table.ts");
  const { createWasmBackend } = await import("../wasm/backend.ts");
  const { simd } = probeCapabilities();
  return {
    name: wasmName(),
    backend: createWasmBackend({ threads, shared: true }),
    able: (node) => namesOf(WASM_KERNELS[node.op], { node, simd, threads }),
  };
}

async function openGpu(provider: GpuProvider | undefined): Promise<NamedDevice> {
  const { openShared } = await import("../gpu/errors.ts");
  const { storagesOf } = await import("../../../gpu/storage_choice.ts");
  const { GPU_KERNELS } = await import("../gpu/kernel_table.ts");
  const { createGpuBackend } = await import("../gpu/backend.ts");
  const gpu = await openShared({ provider }), { capabilities } = gpu;
  const own = storagesOf(capabilities), isOwn = JSON.stringify(own);
  const others = [{}, ...STORAGES].filter((storages) => JSON.stringify(storages) !== isOwn);
  return {
    name: gpuName(capabilities.adapter, provider),
    backend: createGpuBackend({ gpu }),
    able: (node, storages) => namesOf(GPU_KERNELS[node.op], { node, capabilities, storages }),
    storages: [own, ...others],
  };
}

function namesOf<Context extends { readonly node: Node }>(
  kernels: readonly { readonly name: string; when(context: Context): boolean }[] = [],
  context: Context,
): string[] {
  return kernels.filter((kernel) => kernel.when(context)).map(({ name }) => name);
}

/** The table of WASM on this machine. */
export function tuningOfWasm(cacheDir: string | undefined): Tuning | undefined {
  const tables = readTunings(cacheDir);
  return Object.keys(tables).length > 0 ? tables[wasmName()] : undefined;
}

/** What finds the table of an adapter, when the device is there. */
export function tuningOfGpu(
  provider: GpuProvider | undefined,
  cacheDir: string | undefined,
): () => Promise<Tuning | undefined> {
  return async () => {
    const tables = readTunings(cacheDir);
    if (Object.keys(tables).length === 0) return undefined;
    const { sharedGpu } = await import("../../../gpu/shared.ts");
    try {
      const { capabilities } = await sharedGpu({ provider });
      return tables[gpuName(capabilities.adapter, provider)];
    } catch {
      return undefined; // whoever prepares the plan says what is wrong
    }
  };
}
