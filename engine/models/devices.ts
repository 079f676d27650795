// The places where a model can be computed, and what passes may ask of each. Code of a device is loaded
// when it is chosen, so that a script that uses one of them does not start with all.

import { hasIntegerKernel } from "../../wasm/weight_layout.ts";
import { UnsupportedError } from "../errors.ts";
import { getOp } from "../graph/ops/mod.ts";
import type { Backend, DeviceName } from "../plan/backend.ts";
import { withAdapterScales } from "../plan/adapter_scales.ts";
import { withSpans } from "../plan/spans.ts";

/** A device made ready. */
export interface Device {
  readonly backend: Backend;
  /** Whether 8-bit activations times weights of this number format have a kernel. */
  hasIntegerKernel(format: string): boolean;
  /** Whether an op has a kernel, asked before fused ops are used. */
  hasKernel(op: string): boolean;
}

/** Options of devices. */
export interface DeviceOptions {
  readonly threads?: number | undefined;
  /** Kernels that must not be used, by name. */
  readonly excludeKernels?: readonly string[] | undefined;
}

const OPENERS: Readonly<Record<DeviceName, (options: DeviceOptions) => Promise<Device>>> = {
  // The reference rounds activations where wasm does, so that "fast" means the same on both.
  reference: async () => {
    const { createReferenceBackend } = await import("../plan/reference_backend.ts");
    return { backend: createReferenceBackend(), hasIntegerKernel, hasKernel: () => true };
  },
  wasm: async ({ threads, excludeKernels = [] }) => {
    const { createWasmBackend } = await import("../plan/wasm_backend.ts");
    const hasKernel = (op: string): boolean =>
      getOp(op).kernels.wasm.some(({ name }) => !excludeKernels.includes(name));
    return {
      backend: createWasmBackend(threads === undefined ? {} : { threads }),
      hasIntegerKernel: (format) => hasIntegerKernel(format) && hasKernel("matmul_q8"),
      hasKernel,
    };
  },
  gpu: () =>
    Promise.reject(
      new UnsupportedError("device gpu is not built yet", { remedy: "Use device wasm" }),
    ),
};

/**
 * The device that is meant; `auto` is wasm as long as there is no other.
 *
 * @throws {UnsupportedError} If it is not built.
 */
export async function openDevice(
  name: "auto" | DeviceName,
  options: DeviceOptions,
): Promise<Device> {
  const device = await OPENERS[name === "auto" ? "wasm" : name](options);
  return { ...device, backend: withSpans(withAdapterScales(device.backend)) };
}
