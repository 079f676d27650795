// WASM kernels of `join_columns`, best first.

import { emit, hasStaticColumns, inputAddress, outputAddress, rowsOf } from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `join_columns`. */
export const joinColumnsKernels: readonly WasmKernel[] = [
  {
    name: "join_columns_f32",
    when: (context) => hasStaticColumns(context, 0) && hasStaticColumns(context, 1),
    lower(lowering) {
      const { inputs: [a, b] } = lowering.node;
      emit(lowering, "join_columns", {
        a: inputAddress(lowering, 0),
        b: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        rows: rowsOf(a!),
        a_bytes: 4 * (lastDim(a!) as number),
        b_bytes: 4 * (lastDim(b!) as number),
      });
    },
  },
];
