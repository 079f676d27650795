// WASM kernels of ops that work on rows: softmax, sums, selections.

import { type Dim, product } from "../../../graph/dim/mod.ts";
import {
  emit,
  hasStaticColumns,
  inputAddress,
  isStatic,
  outputAddress,
  rowsOf,
} from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `join_columns`. */
export const joinColumnsKernels: readonly WasmKernel[] = [
  {
    name: "join_columns_f32",
    when: (context) => hasStaticColumns(context, 0) && hasStaticColumns(context, 1),
    lower(lowering) {
      const { inputs: [a, b] } = lowering.node;
      emit(lowering, {
        name: "join_columns",
        operands: {
          a: inputAddress(lowering, 0),
          b: inputAddress(lowering, 1),
          y: outputAddress(lowering),
          rows: rowsOf(a!),
          a_bytes: 4 * (lastDim(a!) as number),
          b_bytes: 4 * (lastDim(b!) as number),
        },
      });
    },
  },
];

/** Kernels of `select_rows`. */
export const selectRowsKernels: readonly WasmKernel[] = [
  {
    name: "select_rows_f32",
    when: hasStaticColumns,
    lower(lowering) {
      const { inputs: [x, rows] } = lowering.node;
      emit(lowering, {
        name: "select_rows",
        operands: {
          x: inputAddress(lowering, 0),
          indices: inputAddress(lowering, 1),
          y: outputAddress(lowering),
          count: rows!.shape[0]!,
          rows: x!.shape[0]!,
          bytes: 4 * (x!.shape[1] as number),
        },
      });
    },
  },
];

/** Kernels of `softmax`. */
export const softmaxKernels: readonly WasmKernel[] = [
  {
    name: "softmax_f32",
    when: ({ node: { inputs: [x], attributes } }) => x!.shape.at(attributes.axis as number) !== 0,
    lower(lowering) {
      const { inputs: [x], attributes } = lowering.node;
      const axis = attributes.axis as number;
      const at = axis < 0 ? axis + x!.shape.length : axis;
      emit(lowering, {
        name: "softmax",
        operands: {
          x: inputAddress(lowering, 0),
          y: outputAddress(lowering),
          outer: product(x!.shape.slice(0, at)),
          length: x!.shape[at]!,
          inner: product(x!.shape.slice(at + 1)),
        },
      });
    },
  },
];

/** Kernels of `sparse_add`. */
export const sparseAddKernels: readonly WasmKernel[] = [{
  name: "sparse_add_f32",
  when: ({ node: { inputs } }) =>
    isStatic(inputs[0]!.shape.at(-1)) && isStatic(inputs[1]!.shape.at(-1)),
  lower(lowering) {
    const [base, x] = lowering.node.inputs;
    emit(lowering, {
      name: "sparse_add",
      operands: {
        base: inputAddress(lowering, 0),
        x: inputAddress(lowering, 1),
        starts: inputAddress(lowering, 2),
        columns: inputAddress(lowering, 3),
        values: inputAddress(lowering, 4),
        y: outputAddress(lowering),
        rows: rowsOf(base!),
        outputs: lastDim(base!),
        inner: lastDim(x!),
      },
    });
  },
}];

/** Kernels of `weighted_sum`. */
export const weightedSumKernels: readonly WasmKernel[] = [
  {
    name: "weighted_sum_f32",
    when: ({ node: { inputs: [x] } }) => isStatic(x!.shape[1]) && isStatic(x!.shape[2]),
    lower(lowering) {
      const [rows, count, columns] = lowering.node.inputs[0]!.shape as [Dim, number, number];
      emit(lowering, {
        name: "weighted_sum",
        operands: {
          x: inputAddress(lowering, 0),
          weights: inputAddress(lowering, 1),
          y: outputAddress(lowering),
          rows,
          count,
          columns,
        },
      });
    },
  },
];
