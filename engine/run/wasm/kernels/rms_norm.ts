// WASM kernels of `rms_norm`, best first.

import {
  emit,
  hasStaticColumns,
  inputAddress,
  outputAddress,
  rowsOf,
  rowsOfChunk,
} from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `rms_norm`. */
export const rmsNormKernels: readonly WasmKernel[] = [
  {
    name: "rms_norm_f32",
    inRowChunks: true,
    when: hasStaticColumns,
    lower(lowering) {
      const { inputs: [x], attributes: { epsilon, base } } = lowering.node;
      emit(lowering, "rms_norm", {
        x: inputAddress(lowering, 0),
        w: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        rows: rowsOf(x!),
        columns: lastDim(x!),
        group: rowsOfChunk(x!),
        epsilon: epsilon as number,
        base: base as number,
      });
    },
  },
];
