// WASM kernels of `layer_norm`, best first.

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

/** Kernels of `layer_norm`. */
export const layerNormKernels: readonly WasmKernel[] = [
  {
    name: "layer_norm_f32",
    inRowChunks: true,
    when: hasStaticColumns,
    lower(lowering) {
      const { inputs: [x], attributes } = lowering.node;
      emit(lowering, "layer_norm", {
        x: inputAddress(lowering, 0),
        w: inputAddress(lowering, 1),
        b: inputAddress(lowering, 2),
        y: outputAddress(lowering),
        rows: rowsOf(x!),
        columns: lastDim(x!),
        group: rowsOfChunk(x!),
        epsilon: attributes.epsilon as number,
      });
    },
  },
];
