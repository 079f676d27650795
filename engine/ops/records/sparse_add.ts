// sparse_add: what a few weights add to a product, those that were taken out of a matrix before it was
// quantised (spec IF-13). Entries lie row by row, as compressed sparse rows.

import { defineOp } from "../define_op.ts";
import { type Dim, product } from "../../graph/dim/mod.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import {
  checkInputCount,
  lastDim,
  refuseMisfit,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/**
 * (base f32[…, N], x f32[…, K], starts i32[N + 1], columns i32[E], values f32[E]) → f32[…, N]:
 * base[m, n] + Σ x[m, columns[e]] · values[e] over starts[n] ≤ e < starts[n + 1]. Whoever builds the graph checks the
 * entries (engine/formats/outliers.ts): starts ascend from 0 to E, and columns are below K.
 */
export const sparseAdd: OpRecord = defineOp({
  name: "sparse_add",
  summary: "base + x · Sᵀ with a sparse matrix S",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 5);
    const base = requireInput(inputs, { index: 0, name: "base", minRank: 1 });
    const x = requireInput(inputs, { index: 1, name: "x", minRank: 1 });
    const [rows, xRows] = [base, x].map(({ shape }) => product(shape.slice(0, -1))) as [Dim, Dim];
    refuseMisfit(xRows, { sizes: [rows], what: "the number of rows of x" });
    const starts = requireInput(inputs, { index: 2, name: "starts", dtype: "i32", rank: 1 });
    const columns = requireInput(inputs, { index: 3, name: "columns", dtype: "i32", rank: 1 });
    const values = requireInput(inputs, { index: 4, name: "values", rank: 1 });
    requireEqual(columns.shape[0]!, { b: values.shape[0]!, what: "the columns and the values" });
    if (lastDim(base) !== (starts.shape[0] as number) - 1) {
      throw new RangeError(
        `Cannot add to ${lastDim(base)} columns by ${starts.shape[0]} starts: one more is needed`,
      );
    }
    return [{ dtype: "f32", shape: [...base.shape] }];
  },
  reference({ inputs: [base, x, starts, columns, values], outputs: [out] }) {
    const width = base!.shape.at(-1)!, inner = x!.shape.at(-1)!;
    for (let at = 0; at < out!.data.length; at++) {
      const [row, column] = [Math.floor(at / width), at % width];
      let sum = getElement(base!, at);
      for (let e = getElement(starts!, column); e < getElement(starts!, column + 1); e++) {
        sum += getElement(x!, row * inner + getElement(columns!, e)) * getElement(values!, e);
      }
      setElement(out!, { index: at, value: sum });
    }
  },
  cases: (random) =>
    [[0, 3, 8, 2], [1, 1, 1, 1], [1, 65, 33, 90], [3, 130, 64, 40], [5, 7, 16, 1]].map((sizes) =>
      sparseCase(random, sizes as [number, number, number, number])
    ),
});

function sparseCase(
  random: CaseRandom,
  [rows, outputs, inner, entries]: [number, number, number, number],
): OpCase {
  const owners = Array.from({ length: entries }, () => random.integer(0, outputs - 1));
  const starts = Array.from(
    { length: outputs + 1 },
    (_, n) => owners.filter((owner) => owner < n).length,
  );
  const columns = owners.map(() => random.integer(0, inner - 1));
  return {
    name: `[${rows}, ${inner}] to [${rows}, ${outputs}], ${entries} entries`,
    inputs: [
      random.input([rows, outputs]),
      random.input([rows, inner]),
      random.indices(starts),
      random.indices(columns),
      random.input([entries]),
    ],
  };
}
