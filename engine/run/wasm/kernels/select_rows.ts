// WASM kernels of `select_rows`, best first.

import { emit, hasStaticColumns, inputAddress, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `select_rows`. */
export const selectRowsKernels: readonly WasmKernel[] = [
  {
    name: "select_rows_f32",
    when: hasStaticColumns,
    lower(lowering) {
      const { inputs: [x, rows] } = lowering.node;
      emit(lowering, "select_rows", {
        x: inputAddress(lowering, 0),
        indices: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        count: rows!.shape[0]!,
        rows: x!.shape[0]!,
        bytes: 4 * (x!.shape[1] as number),
      });
    },
  },
];
