// WASM kernels of `quantize_lf8`, best first.

import { emit, inputAddress, outputAddress, rowsOf } from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `quantize_lf8`. */
export const quantizeLf8Kernels: readonly WasmKernel[] = [{
  name: "quantize_lf8",
  when: () => true,
  lower(lowering) {
    const { inputs: [x] } = lowering.node;
    emit(lowering, "quantize_lf8", {
      x: inputAddress(lowering, 0),
      y: outputAddress(lowering),
      rows: rowsOf(x!),
      columns: lastDim(x!) as number,
    });
  },
}];
