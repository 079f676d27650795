// WASM kernels of `matmul_lf8`, best first.

import { LF8_GROUP, lf8RowBytes } from "../../../../quant/lf8_products.ts";
import { emit, inputAddress, outputAddress, rowsOf } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `matmul_lf8`. */
export const matmulLf8Kernels: readonly WasmKernel[] = [{
  name: "matmul_lf8",
  when: () => true,
  lower(lowering) {
    const { inputs: [x, weight] } = lowering.node;
    const [outputs, bytes] = weight!.shape as [number, number];
    emit(lowering, "matmul_lf8", {
      x: inputAddress(lowering, 0),
      w: inputAddress(lowering, 1),
      y: outputAddress(lowering),
      bias: inputAddress(lowering, 2),
      rows: rowsOf(x!),
      columns: bytes / lf8RowBytes(LF8_GROUP) * LF8_GROUP,
      outputs,
    });
  },
}];
