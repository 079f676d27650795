// WASM kernels of `scale`, best first.

import { countOf, emit, inputAddress, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `scale`. */
export const scaleKernels: readonly WasmKernel[] = [
  {
    name: "scale_f32",
    when: () => true,
    lower(lowering) {
      const { inputs: [x], attributes } = lowering.node;
      emit(lowering, "scale", {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        count: countOf(x!),
        factor: attributes.factor as number,
      });
    },
  },
];
