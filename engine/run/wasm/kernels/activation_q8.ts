// WASM kernels of `activation_q8`, best first.

import { q8RowBytes } from "../../../../quant/q8_activation.ts";
import { ACTIVATION_KINDS } from "../../../../wasm/opcodes_activation.ts";
import type { ActivationName } from "../../../ops/activations.ts";
import { emit, inputAddress, outputAddress, rowsOf } from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel } from "../kernel.ts";

/** The floats of a chunk (wasm/assembly/matmul/quantize.ts). */
const SCRATCH_BYTES = 4 * 512;

/** Kernels of `activation_q8`. */
export const activationQ8Kernels: readonly WasmKernel[] = [
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
];
