// The one place that chooses kernels, for every backend and every front end: of those that a device has for
// an op, the first that takes the node and is not excluded. Callers never ask for features of a device.

import type { Capabilities } from "../../gpu/kernel.ts";
import type { Node } from "../graph/graph.ts";
import type { NodeDraft } from "../plan/passes/pass.ts";
import type { DeviceName, PrepareOptions } from "./backend.ts";
import type { GpuKernel, GpuKernelContext } from "./gpu/kernel.ts";
import { GPU_KERNELS } from "./gpu/kernel_table.ts";
import type { WasmKernel, WasmKernelContext } from "./wasm/kernel.ts";
import { WASM_KERNELS } from "./wasm/kernel_table.ts";

/** Which kernels may be taken. */
export type KernelWish = Pick<PrepareOptions, "forceKernels" | "excludeKernels">;

const TABLES = { wasm: WASM_KERNELS, gpu: GPU_KERNELS } as const;

/** Names of an op's kernels on a device, best first; the reference needs none. */
export function kernelNames(op: string, device: DeviceName): string[] {
  return device === "reference" ? [] : (TABLES[device][op] ?? []).map(({ name }) => name);
}

/** Whether an op has a kernel on a device, for whatever nodes. */
export function hasKernel(
  op: string,
  device: DeviceName,
  { excludeKernels }: KernelWish = {},
): boolean {
  return kernelNames(op, device).some((name) => !excludeKernels?.has(name));
}

/** The WASM kernel that runs a node; undefined: none does. */
export function chooseWasmKernel(
  context: WasmKernelContext,
  wish: KernelWish = {},
): WasmKernel | undefined {
  return choose(WASM_KERNELS[context.node.op], context, wish);
}

/** The WebGPU kernel that runs a node; undefined: none does. */
export function chooseGpuKernel(
  context: GpuKernelContext,
  wish: KernelWish = {},
): GpuKernel | undefined {
  return choose(GPU_KERNELS[context.node.op], context, wish);
}

/** What every adapter can do: a kernel that asks for more has one beside it that does not. */
const LEAST: Capabilities = {
  ...{ f16: false, subgroupSize: 0, subgroupsNeedEnable: false, packedDot: false },
  ...{ subgroupMatrix: false, timestamp: false, isSoftware: false, adapter: "" },
  ...{ maxBindingBytes: 2 ** 27, maxBufferBytes: 2 ** 28, maxStorageBindings: 8 },
  ...{ maxWorkgroupBytes: 2 ** 14, maxWorkgroupSize: 256 },
  ...{ maxTexture2d: 8192, maxTexture3d: 2048, maxTextureLayers: 256 },
};

/** Whether a device has a kernel for a node that a pass would make; the reference computes what WASM does. */
export function takesDraft(draft: NodeDraft, device: DeviceName, wish: KernelWish = {}): boolean {
  const node: Node = { id: -1, name: "", ...draft };
  return device === "gpu"
    ? chooseGpuKernel({ node, capabilities: LEAST }, wish) !== undefined
    : chooseWasmKernel({ node, simd: "relaxed", threads: 1 }, wish) !== undefined;
}

interface Kernel<Context> {
  readonly name: string;
  when(context: Context): boolean;
}

function choose<Context extends { readonly node: Node }, K extends Kernel<Context>>(
  kernels: readonly K[] = [],
  context: Context,
  { forceKernels, excludeKernels }: KernelWish,
): K | undefined {
  const forced = forceKernels?.[context.node.name];
  return kernels.find((candidate) =>
    (forced === undefined || candidate.name === forced) &&
    !excludeKernels?.has(candidate.name) && candidate.when(context)
  );
}
