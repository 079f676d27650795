// WASM kernels of `glu_q8`, best first.

import { q8RowBytes } from "../../../../quant/q8_activation.ts";
import { ACTIVATION_KINDS } from "../../../../wasm/opcodes_activation.ts";
import type { ActivationName } from "../../../ops/activations.ts";
import { emit, inputAddress, outputAddress, rowsOf } from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel } from "../kernel.ts";

/** The floats of a chunk (wasm/assembly/matmul/quantize.ts). */
const GLU_SCRATCH_BYTES = 4 * 512;

/** Kernels of `glu_q8`. */
export const gluQ8Kernels: readonly WasmKernel[] = [
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
];
