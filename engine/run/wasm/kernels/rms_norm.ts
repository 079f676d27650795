// WASM kernels of `rms_norm`, best first.

import { q8RowBytes } from "../../../../quant/q8_activation.ts";
import {
  emit,
  hasStaticColumns,
  inputAddress,
  outputAddress,
  rowsOf,
  rowsOfChunk,
} from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel, WasmLowering } from "../kernel.ts";

/** Kernels of `rms_norm`. */
export const rmsNormKernels: readonly WasmKernel[] = [
  {
    name: "rms_norm_f32",
    inRowChunks: true,
    when: (context) => context.node.attributes.to === "f32" && hasStaticColumns(context),
    lower(lowering) {
      const columns = lastDim(lowering.node.inputs[0]!);
      emit(lowering, "rms_norm", { ...operandsOf(lowering), columns });
    },
  },
  {
    name: "rms_norm_q8",
    inRowChunks: true,
    when: ({ node }) => node.attributes.to === "q8",
    lower(lowering) {
      const columns = lastDim(lowering.node.inputs[0]!) as number;
      emit(lowering, "rms_norm_q8", {
        ...operandsOf(lowering),
        columns,
        row_bytes: q8RowBytes(columns),
        // A multiple of 64, because columns are one of 32.
        scratch: lowering.scratch(4 * columns),
        scratch_bytes: 4 * columns,
      });
    },
  },
];

function operandsOf(lowering: WasmLowering) {
  const { inputs: [x], attributes: { epsilon, base } } = lowering.node;
  return {
    x: inputAddress(lowering, 0),
    w: inputAddress(lowering, 1),
    y: outputAddress(lowering),
    rows: rowsOf(x!),
    group: rowsOfChunk(x!),
    epsilon: epsilon as number,
    base: base as number,
  };
}
