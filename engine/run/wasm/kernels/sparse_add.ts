// WASM kernels of `sparse_add`, best first.

import { emit, inputAddress, isStatic, outputAddress, rowsOf } from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `sparse_add`. */
export const sparseAddKernels: readonly WasmKernel[] = [{
  name: "sparse_add_f32",
  when: ({ node: { inputs } }) =>
    isStatic(inputs[0]!.shape.at(-1)) && isStatic(inputs[1]!.shape.at(-1)),
  lower(lowering) {
    const [base, x] = lowering.node.inputs;
    emit(lowering, "sparse_add", {
      base: inputAddress(lowering, 0),
      x: inputAddress(lowering, 1),
      starts: inputAddress(lowering, 2),
      columns: inputAddress(lowering, 3),
      values: inputAddress(lowering, 4),
      y: outputAddress(lowering),
      rows: rowsOf(base!),
      outputs: lastDim(base!),
      inner: lastDim(x!),
    });
  },
}];
