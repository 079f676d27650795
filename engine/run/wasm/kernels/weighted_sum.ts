// WASM kernels of `weighted_sum`, best first.

import type { Dim } from "../../../graph/dim/mod.ts";
import { emit, inputAddress, isStatic, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `weighted_sum`. */
export const weightedSumKernels: readonly WasmKernel[] = [
  {
    name: "weighted_sum_f32",
    when: ({ node: { inputs: [x] } }) => isStatic(x!.shape[1]) && isStatic(x!.shape[2]),
    lower(lowering) {
      const [rows, count, columns] = lowering.node.inputs[0]!.shape as [Dim, number, number];
      emit(lowering, "weighted_sum", {
        x: inputAddress(lowering, 0),
        weights: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        rows,
        count,
        columns,
      });
    },
  },
];
