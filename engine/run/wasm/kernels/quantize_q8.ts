// WASM kernels of `quantize_q8`, best first.

import { q8RowBytes } from "../../../../quant/q8_activation.ts";
import { emit, inputAddress, outputAddress, rowsOf, rowsOfChunk } from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `quantize_q8`. */
export const quantizeQ8Kernels: readonly WasmKernel[] = [
  {
    name: "quantize_q8",
    inRowChunks: true,
    when: () => true,
    lower(lowering) {
      const { inputs: [x] } = lowering.node;
      const columns = lastDim(x!) as number;
      emit(lowering, "quantize_q8", {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        rows: rowsOf(x!),
        columns,
        group: rowsOfChunk(x!),
        row_bytes: q8RowBytes(columns),
      });
    },
  },
];
