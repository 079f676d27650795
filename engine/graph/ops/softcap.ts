// softcap: cap · tanh(x / cap), which keeps logits within ±cap (Gemma 2).

import { number } from "../attributes.ts";
import { elementwiseCases } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import { gpuSoftcapKernels } from "../lower_gpu_elementwise.ts";
import { countOf, emit, inputAddress, outputAddress } from "../lower_wasm.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x f32[…]) → f32[…], cap > 0. */
export const softcap: OpRecord = defineOp({
  name: "softcap",
  summary: "cap · tanh(x / cap)",
  attributes: { cap: number() },
  infer(inputs, { cap }) {
    checkInputCount(inputs, 1);
    if (cap <= 0) throw new RangeError(`attribute "cap" must be above 0: it is ${cap}`);
    return [{ dtype: "f32", shape: requireInput(inputs, 0, "x").shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { cap } }) {
    for (let i = 0; i < x!.data.length; i++) {
      setElement(out!, i, cap * Math.tanh(getElement(x!, i) / cap));
    }
  },
  cases: (random) => elementwiseCases(random, 1, [{ cap: 30 }, { cap: 0.5 }]),
  kernels: {
    wasm: [
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
    ],
    gpu: gpuSoftcapKernels,
  },
});
