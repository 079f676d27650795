// WASM kernels of `softcap`, best first.

import { countOf, emit, inputAddress, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `softcap`. */
export const softcapKernels: readonly WasmKernel[] = [
  {
    name: "softcap_f32",
    when: () => true,
    lower(lowering) {
      const { inputs: [x], attributes } = lowering.node;
      emit(lowering, "softcap", {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        count: countOf(x!),
        cap: attributes.cap as number,
      });
    },
  },
];
