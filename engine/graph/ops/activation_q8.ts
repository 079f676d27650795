// activation_q8: activation and quantize_q8 in one, so that the widest row of a layer is not stored as floats
// a second time. Made by a pass (engine/plan/passes/fuse_quantized.ts).

import { q8RowBytes } from "../../../quant/q8_activation.ts";
import { ACTIVATION_KINDS } from "../../../wasm/opcodes_activation.ts";
import { ACTIVATION_NAMES, type ActivationName, activations } from "../activations.ts";
import { choice } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import { emit, inputAddress, outputAddress, rowsOf } from "../lower_wasm.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, lastDim, requireInput } from "../shape_rules.ts";
import { inferQ8, q8Sizes, quantizeGroups } from "./quantize_q8.ts";

/** The floats of a chunk (wasm/assembly/quantize.ts). */
const SCRATCH_BYTES = 4 * 512;

/** (x f32[…, K]) → q8[…, K]. */
export const activationQ8: OpRecord = defineOp({
  name: "activation_q8",
  summary: "quantize_q8(activation(x))",
  attributes: { kind: choice(ACTIVATION_NAMES) },
  infer(inputs) {
    checkInputCount(inputs, 1);
    return [inferQ8(requireInput(inputs, 0, "x", { minRank: 1 }))];
  },
  reference({ inputs: [x], outputs: [out], attributes: { kind } }) {
    for (let i = 0; i < x!.data.length; i++) {
      setElement(out!, i, activations[kind](getElement(x!, i)));
    }
    quantizeGroups(out!, out!);
  },
  cases: (random) =>
    q8Sizes.flatMap(({ rows, width }) =>
      ACTIVATION_NAMES.map((kind) => ({
        name: `${kind}, [${rows}, ${width}]`,
        inputs: [random.input([ROWS, width], { M: rows })],
        attributes: { kind },
        bindings: { M: rows },
      }))
    ),
  tolerance: {
    ofLargest: 1 / 126,
    reason: "one 8-bit step where a rounding tie falls the other way",
  },
  kernels: {
    wasm: [
      {
        name: "activation_q8",
        when: () => true,
        lower(lowering) {
          const { inputs: [x], attributes } = lowering.node;
          const columns = lastDim(x!) as number;
          emit(lowering, "activation_q8", {
            x: inputAddress(lowering, 0),
            y: outputAddress(lowering),
            rows: rowsOf(x!),
            columns,
            row_bytes: q8RowBytes(columns),
            kind: ACTIVATION_KINDS[attributes.kind as ActivationName],
            scratch: lowering.scratch(SCRATCH_BYTES),
            scratch_bytes: SCRATCH_BYTES,
          });
        },
      },
    ],
    gpu: [],
  },
});
