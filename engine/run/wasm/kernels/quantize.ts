// WASM kernels of `quantize`, best first.

import { UNARY_NUMBERS, type UnaryName } from "../../../../functions/unary.ts";
import { lowRowBytes, q8RowBytes } from "../../../../quant/q8_activation.ts";
import { emit, inputAddress, outputAddress, rowsOf, rowsOfChunk } from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel, WasmLowering } from "../kernel.ts";

/** The floats of a chunk (wasm/assembly/matmul/quantize.ts). */
export const SCRATCH_BYTES: number = 4 * 1024;

/** Kernels of `quantize`. */
export const quantizeKernels: readonly WasmKernel[] = [
  {
    name: "quantize_q8",
    inRowChunks: true,
    when: ({ node: { attributes: { format, activation } } }) =>
      format !== "lf8" && activation === "none",
    lower(lowering) {
      const { x, y, rows, columns } = rowOperands(lowering);
      const group = rowsOfChunk(lowering.node.inputs[0]!);
      emit(lowering, {
        name: "quantize_q8",
        operands: {
          x,
          y,
          rows,
          columns,
          group,
          ...lowOperands(lowering, columns),
        },
      });
    },
  },
  {
    name: "activation_q8",
    when: ({ node: { attributes: { format, activation } } }) =>
      format !== "lf8" && activation !== "none",
    lower(lowering) {
      const operands = rowOperands(lowering);
      emit(lowering, {
        name: "activation_q8",
        operands: {
          ...operands,
          ...lowOperands(lowering, operands.columns),
          kind: UNARY_NUMBERS[lowering.node.attributes.activation as UnaryName],
        },
      });
    },
  },
  {
    name: "quantize_lf8",
    when: ({ node: { attributes: { format, activation } } }) =>
      format === "lf8" && activation === "none",
    lower: (lowering) => emit(lowering, { name: "quantize_lf8", operands: rowOperands(lowering) }),
  },
];

/** Whether sums are to be low, how long rows are then, and scratch memory. */
function lowOperands(lowering: WasmLowering, columns: number) {
  const isLow = lowering.node.attributes.format === "q8_low";
  return {
    row_bytes: isLow ? lowRowBytes(columns) : q8RowBytes(columns),
    low: Number(isLow),
    scratch: lowering.scratch(SCRATCH_BYTES),
    scratch_bytes: SCRATCH_BYTES,
  };
}

function rowOperands(lowering: WasmLowering) {
  const { inputs: [x] } = lowering.node;
  return {
    x: inputAddress(lowering, 0),
    y: outputAddress(lowering),
    rows: rowsOf(x!),
    columns: lastDim(x!) as number,
  };
}
