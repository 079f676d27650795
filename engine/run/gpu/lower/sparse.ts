// WebGPU kernel of `sparse_add`.

import { SPARSE_BLOCK, sparseAddShader } from "../../../../gpu/kernels/sparse_add.ts";
import type { GpuKernel } from "../kernel.ts";
import { groupsFor, inputSlice, outputSlice } from "./lower.ts";
import { countOf, hasStaticColumns, isStatic } from "../../wasm/lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";

/** Kernels of `sparse_add`; a binding cannot be empty. */
export const gpuSparseAddKernels: readonly GpuKernel[] = [{
  name: "gpu_sparse_add_f32",
  when: (context) =>
    hasStaticColumns(context, 0) && hasStaticColumns(context, 1) &&
    isStatic(context.node.inputs[3]!.shape[0]),
  lower(lowering) {
    const { inputs: [base, x], outputs: [y] } = lowering.node;
    const count = countOf(y!);
    lowering.emit({
      shader: sparseAddShader,
      storage: {
        base: inputSlice(lowering, 0),
        x: inputSlice(lowering, 1),
        starts: inputSlice(lowering, 2),
        columns: inputSlice(lowering, 3),
        values: inputSlice(lowering, 4),
        y: outputSlice(lowering),
      },
      uniforms: { count, outputs: lastDim(base!), inner: lastDim(x!) },
      workgroups: groupsFor(count, SPARSE_BLOCK),
    });
  },
}];
