// WASM kernels of `activation`, best first.

import { ACTIVATION_KINDS } from "../../../../wasm/opcodes_activation.ts";
import type { ActivationName } from "../../../ops/activations.ts";
import { countOf, emit, inputAddress, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `activation`. */
export const activationKernels: readonly WasmKernel[] = [
  {
    name: "activation_f32",
    when: () => true,
    lower(lowering) {
      const { inputs: [x], attributes } = lowering.node;
      emit(lowering, "activation", {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        count: countOf(x!),
        kind: ACTIVATION_KINDS[attributes.kind as ActivationName],
      });
    },
  },
];
