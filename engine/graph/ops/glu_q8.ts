// glu_q8: glu and quantize_q8 in one, so that the widest row of a layer is never stored as floats.
// Made by a pass (engine/plan/passes.ts).

import { q8RowBytes } from "../../../quant/q8_activation.ts";
import { ACTIVATION_KINDS } from "../../../wasm/opcodes_activation.ts";
import { ACTIVATION_NAMES, type ActivationName } from "../activations.ts";
import { choice } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { gpuGluQ8Kernels } from "../lower_gpu_quantize.ts";
import { emit, inputAddress, outputAddress, rowsOf } from "../lower_wasm.ts";
import type { OpRecord } from "../op.ts";
import { lastDim } from "../shape_rules.ts";
import { gluElements, gluInput } from "./glu.ts";
import { inferQ8, q8Sizes, quantizeGroups } from "./quantize_q8.ts";

/** The floats of a chunk (wasm/assembly/quantize.ts). */
const GLU_SCRATCH_BYTES = 4 * 512;

/** (gate f32[…, K], up f32[…, K]) → q8[…, K]. */
export const gluQ8: OpRecord = defineOp({
  name: "glu_q8",
  summary: "quantize_q8(activation(gate) · up)",
  attributes: { activation: choice(ACTIVATION_NAMES) },
  infer(inputs) {
    return [inferQ8(gluInput(inputs))];
  },
  reference({ inputs: [gate, up], outputs: [out], attributes: { activation } }) {
    gluElements(gate!, up!, out!, activation);
    quantizeGroups(out!, out!);
  },
  cases: (random) =>
    q8Sizes.flatMap(({ rows, width }) =>
      ACTIVATION_NAMES.map((activation) => ({
        name: `${activation}, [${rows}, ${width}]`,
        inputs: [0, 1].map(() => random.input([ROWS, width], { M: rows })),
        attributes: { activation },
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
        name: "glu_q8",
        when: () => true,
        lower(lowering) {
          const { inputs: [gate], attributes } = lowering.node;
          const columns = lastDim(gate!) as number;
          emit(lowering, "glu_q8", {
            gate: inputAddress(lowering, 0),
            up: inputAddress(lowering, 1),
            y: outputAddress(lowering),
            rows: rowsOf(gate!),
            columns,
            row_bytes: q8RowBytes(columns),
            kind: ACTIVATION_KINDS[attributes.activation as ActivationName],
            scratch: lowering.scratch(GLU_SCRATCH_BYTES),
            scratch_bytes: GLU_SCRATCH_BYTES,
          });
        },
      },
    ],
    gpu: gpuGluQ8Kernels,
  },
});
