// WASM kernels of `norm`, best first. Of norms that are not centred they add no bias, of those that are no base.

import { q8RowBytes } from "../../../../quant/q8_activation.ts";
import type { Node } from "../../../graph/graph.ts";
import {
  emit,
  hasStaticColumns,
  inputAddress,
  outputAddress,
  rowsOf,
  rowsOfChunk,
} from "../lower/lower.ts";
import { isLayerNorm, isRmsNorm } from "../../../ops/records/norm.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel, WasmLowering } from "../kernel.ts";

/** Kernels of `norm`. */
export const normKernels: readonly WasmKernel[] = [
  {
    name: "rms_norm_f32",
    inRowChunks: true,
    when: (context) => isRmsNorm(context.node, "f32") && hasStaticColumns(context),
    lower: (lowering) =>
      emit(lowering, {
        name: "rms_norm",
        operands: { ...operandsOf(lowering), base: baseOf(lowering.node) },
      }),
  },
  {
    name: "rms_norm_q8",
    inRowChunks: true,
    when: ({ node }) => isRmsNorm(node, "q8"),
    lower(lowering) {
      const operands = operandsOf(lowering), columns = operands.columns as number;
      emit(lowering, {
        name: "rms_norm_q8",
        operands: {
          ...operands,
          row_bytes: q8RowBytes(columns),
          base: baseOf(lowering.node),
          // A multiple of 64, because columns are one of 32.
          scratch: lowering.scratch(4 * columns),
          scratch_bytes: 4 * columns,
        },
      });
    },
  },
  {
    name: "layer_norm_f32",
    inRowChunks: true,
    when: (context) => isLayerNorm(context.node) && hasStaticColumns(context),
    lower: (lowering) =>
      emit(lowering, {
        name: "layer_norm",
        operands: { ...operandsOf(lowering), b: inputAddress(lowering, 2) },
      }),
  },
];

function baseOf({ attributes }: Node): number {
  return attributes.base as number;
}

function operandsOf(lowering: WasmLowering) {
  const { inputs: [x], attributes } = lowering.node;
  return {
    x: inputAddress(lowering, 0),
    w: inputAddress(lowering, 1),
    y: outputAddress(lowering),
    rows: rowsOf(x!),
    columns: lastDim(x!),
    group: rowsOfChunk(x!),
    epsilon: attributes.epsilon as number,
  };
}
