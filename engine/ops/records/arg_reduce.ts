// arg_reduce: where along an axis the largest or smallest element stands. NaN is both, as in numpy.

import { choice, flag, integer } from "../attributes.ts";
import { NUMBER_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { axisOf } from "../host_numbers.ts";
import { setElement } from "../host_tensor.ts";
import type { CaseInput, OpRecord } from "../op.ts";
import type { CaseRandom } from "../op_case.ts";
import { checkInputCount } from "../shape_rules.ts";
import { aroundAxis, comparableOf } from "../strided.ts";

/** (x T[…]) → index[… without the axis, or with size 1 there]; of equal elements the first or last. */
export const argReduce: OpRecord = defineOp({
  name: "arg_reduce",
  summary: "index of the largest or smallest element along an axis",
  attributes: {
    kind: choice(["max", "min"]),
    axis: integer(-(2 ** 31)),
    keep: flag(true),
    last: flag(false),
    index: choice(["i32", "i64"], "i64"),
  },
  infer(inputs, { axis, keep, index }) {
    checkInputCount(inputs, 1);
    const { shape } = requireTyped(inputs, { index: 0, name: "x" }, NUMBER_INPUT);
    const at = axisOf(axis, shape.length);
    return [{ dtype: index, shape: keep ? shape.with(at, 1) : shape.toSpliced(at, 1) }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { kind, axis, last } }) {
    const { outer, size, inner } = aroundAxis(x!.shape, axisOf(axis, x!.shape.length));
    if (size === 0 && out!.data.length > 0) {
      throw new RangeError(`Cannot find the ${kind} of an axis without elements`);
    }
    const values = comparableOf(x!);
    const better = (a: number, b: number) => kind === "max" ? a > b : a < b;
    for (let line = 0; line < outer * inner; line++) {
      const start = Math.floor(line / inner) * size * inner + line % inner;
      let best = 0;
      for (let i = 1; i < size; i++) {
        const value = values[start + i * inner]!, top = values[start + best * inner]!;
        const isEqual = value === top || (Number.isNaN(value) && Number.isNaN(top));
        if (isEqual ? last : !Number.isNaN(top) && (better(value, top) || Number.isNaN(value))) {
          best = i;
        }
      }
      setElement(out!, { index: line, value: best });
    }
  },
  cases: (random) => [
    ...(["max", "min"] as const).flatMap((kind) =>
      [0, 1, 2].flatMap((axis) =>
        [false, true].map((last) => ({
          inputs: [fewValues(random)],
          attributes: { kind, axis, keep: last, last, index: "i32" },
        }))
      )
    ),
    ...(["i8", "u16", "u64"] as const).map((dtype) => ({
      inputs: [random.typed(dtype, [3, 0, 200, 7, 1])],
      attributes: { kind: "max" as const, axis: 0 },
    })),
    ...[false, true].map((last) => ({
      name: `a long line${last ? ", the last of equals" : ""}`,
      inputs: [fewValues(random, [2, 2100, 3])],
      attributes: { kind: "min" as const, axis: 1, last, index: "i32" },
    })),
  ],
  tolerance: { ofLargest: 0, reason: "indices" },
});

// Few different values, so that there are equal ones.
function fewValues(random: CaseRandom, shape: readonly number[] = [3, 5, 7]): CaseInput {
  const data = random.normal(shape.reduce((a, b) => a * b)).map(Math.round);
  return { role: "input", dtype: "f32", shape, data };
}
