// WASM kernels of `glu`, best first.

import { ACTIVATION_KINDS } from "../../../../wasm/opcodes_activation.ts";
import type { ActivationName } from "../../../ops/activations.ts";
import { countOf, emit, inputAddress, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `glu`. */
export const gluKernels: readonly WasmKernel[] = [
  {
    name: "glu_f32",
    when: () => true,
    lower(lowering) {
      const { inputs: [gate], attributes } = lowering.node;
      emit(lowering, "glu", {
        gate: inputAddress(lowering, 0),
        up: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        count: countOf(gate!),
        kind: ACTIVATION_KINDS[attributes.activation as ActivationName],
      });
    },
  },
];
