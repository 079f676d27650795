// det: determinants of square matrices, by elimination with row pivots.

import { FLOAT_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { numbersOf, storeNumbers } from "../host_numbers.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual } from "../shape_rules.ts";

/** (x F[…, N, N]) → F[…]. */
export const det: OpRecord = defineOp({
  name: "det",
  summary: "determinants of square matrices",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 1);
    const { dtype, shape } = requireTyped(inputs, { index: 0, name: "x" }, FLOAT_INPUT);
    if (shape.length < 2) throw new RangeError(`x has ${shape.length} dims: must have at least 2`);
    requireEqual(shape.at(-1)!, { b: shape.at(-2)!, what: "rows and columns" });
    return [{ dtype, shape: shape.slice(0, -2) }];
  },
  reference({ inputs: [x], outputs: [out] }) {
    const size = x!.shape.at(-1)!, values = numbersOf(x!);
    const results = Float64Array.from({ length: out!.data.length }, (_, i) => {
      const start = i * size * size;
      const rows = Array.from(
        { length: size },
        (_, row) => Array.from(values.subarray(start + row * size, start + (row + 1) * size)),
      );
      return determinant(rows);
    });
    storeNumbers(out!, results);
  },
  cases: (random) =>
    [[1, 1], [2, 2], [3, 5, 5]].map((shape) => ({ inputs: [random.input(shape)] })),
});

function determinant(rows: number[][]): number {
  let result = 1;
  for (let column = 0; column < rows.length; column++) {
    let pivot = column;
    for (let row = column + 1; row < rows.length; row++) {
      if (Math.abs(rows[row]![column]!) > Math.abs(rows[pivot]![column]!)) pivot = row;
    }
    const top = rows[pivot]!;
    if (top[column] === 0) return 0;
    if (pivot !== column) {
      rows[pivot] = rows[column]!;
      rows[column] = top;
      result = -result;
    }
    result *= top[column]!;
    for (let row = column + 1; row < rows.length; row++) {
      const factor = rows[row]![column]! / top[column]!;
      for (let i = column; i < rows.length; i++) rows[row]![i]! -= factor * top[i]!;
    }
  }
  return result;
}
