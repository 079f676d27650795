// WASM kernels of `clamped_glu`, best first.

import { countOf, emit, inputAddress, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `clamped_glu`. */
export const clampedGluKernels: readonly WasmKernel[] = [
  {
    name: "clamped_glu_f32",
    when: () => true,
    lower(lowering) {
      const { inputs: [gate], attributes: { limit, alpha } } = lowering.node;
      emit(lowering, "clamped_glu", {
        gate: inputAddress(lowering, 0),
        up: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        count: countOf(gate!),
        limit: limit as number,
        alpha: alpha as number,
      });
    },
  },
];
