// Where kernels over virtual tensors keep their tensors (spec MD-2), as data: class of devices → kernel → storages. What is
// not listed stays in buffers, in the engine's own order, and is run by the kernels of that order. So it is by default: a
// texture cannot share memory with a buffer in WebGPU, so whatever goes through one costs a dispatch and a copy each way, and
// a row is only written where the gain was measured: `deno run -A bench/gpu/storages.ts` measures an adapter and
// prints its row. Adapters that compute on the CPU check the bounds of every access to a buffer, element by element, and
// load texels whole: there a convolution in textures takes a twentieth of the time, copies included
// (bench/results/gpu-storages.md). On a card textures win nothing that tiles in workgroup memory do not.

import type { Capabilities } from "./kernel.ts";
import type { StorageKind } from "./virtual_tensor.ts";

/** Storages of a convolution. */
export interface ConvStorages {
  /** Where the activation is read; what is not `planes` is copied there first. */
  readonly source: StorageKind;
  /** Weights are laid there while loading. */
  readonly weights: "buffer" | "texture_2d";
  /** Where the result is written; what is not `planes` is copied from there. */
  readonly target: StorageKind;
}

/** Storages by kernel; absent: the kernel on buffers in the engine's order. */
export interface KernelStorages {
  readonly conv?: ConvStorages;
}

/** Classes of devices, told apart by what they can do. */
export type DeviceClass = "software" | "subgroups" | "plain";

/** The class of a device. */
export function deviceClassOf(
  { isSoftware, subgroupSize }: Pick<Capabilities, "isSoftware" | "subgroupSize">,
): DeviceClass {
  if (isSoftware) return "software";
  return subgroupSize > 0 ? "subgroups" : "plain";
}

/** What was measured to be best. */
const STORAGE_CHOICE: Readonly<Record<DeviceClass, KernelStorages>> = {
  software: { conv: { source: "texture_2d_array", weights: "texture_2d", target: "planes" } },
  subgroups: {},
  plain: {},
};

/** The storages of kernels on a device. */
export function storagesOf(capabilities: Capabilities): KernelStorages {
  return STORAGE_CHOICE[deviceClassOf(capabilities)];
}
