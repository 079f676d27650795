// The one place that chooses kernels, for every backend and every front end: of those that a device has for
// an op, the first that takes the node and is not excluded. Callers never ask for features of a device.

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

/** Whether a WASM kernel takes a node that a pass would make: of the fused ops, only those of WASM have limits. */
export function takesDraft(draft: NodeDraft, wish: KernelWish = {}): boolean {
  const node: Node = { id: -1, name: "", ...draft };
  return chooseWasmKernel({ node, simd: "relaxed", threads: 1 }, wish) !== undefined;
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
  const forced = forceKernels?.[context.node.op];
  return kernels.find((candidate) =>
    (forced === undefined || candidate.name === forced) &&
    !excludeKernels?.has(candidate.name) && candidate.when(context)
  );
}
