// WASM kernels of `rms_norm_q8`, best first.

import { q8RowBytes } from "../../../../quant/q8_activation.ts";
import { emit, inputAddress, outputAddress, rowsOf, rowsOfChunk } from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `rms_norm_q8`. */
export const rmsNormQ8Kernels: readonly WasmKernel[] = [
  {
    name: "rms_norm_q8",
    inRowChunks: true,
    when: () => true,
    lower(lowering) {
      const { inputs: [x], attributes: { epsilon, base } } = lowering.node;
      const columns = lastDim(x!) as number;
      emit(lowering, "rms_norm_q8", {
        x: inputAddress(lowering, 0),
        w: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        rows: rowsOf(x!),
        columns,
        group: rowsOfChunk(x!),
        row_bytes: q8RowBytes(columns),
        epsilon: epsilon as number,
        base: base as number,
        // A multiple of 64, because columns are one of 32.
        scratch: lowering.scratch(4 * columns),
        scratch_bytes: 4 * columns,
      });
    },
  },
];
