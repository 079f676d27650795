// activation: one function on every element.

import { ACTIVATION_KINDS } from "../../../wasm/opcodes_activation.ts";
import { ACTIVATION_NAMES, type ActivationName, activations } from "../activations.ts";
import { choice } from "../attributes.ts";
import { elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import { gpuActivationKernels } from "../lower_gpu_elementwise.ts";
import { countOf, emit, inputAddress, outputAddress } from "../lower_wasm.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x f32[…]) → f32[…]. */
export const activation: OpRecord = defineOp({
  name: "activation",
  summary: "an activation function on every element",
  attributes: { kind: choice(ACTIVATION_NAMES) },
  infer(inputs) {
    checkInputCount(inputs, 1);
    return [{ dtype: "f32", shape: requireInput(inputs, 0, "x").shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { kind } }) {
    for (let i = 0; i < x!.data.length; i++) {
      setElement(out!, i, activations[kind](getElement(x!, i)));
    }
  },
  cases: (random) => elementwiseCases(random, 1, ACTIVATION_NAMES.map((kind) => ({ kind }))),
  kernels: {
    wasm: [
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
    ],
    gpu: gpuActivationKernels,
  },
});
