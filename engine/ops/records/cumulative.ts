// cumulative: running sums or products along an axis.

import { choice, flag, integer } from "../attributes.ts";
import { isWide, NUMBER_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { axisOf, numbersOf, storeNumbers } from "../host_numbers.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { aroundAxis } from "../strided.ts";

/** (x T[…]) → T[…]. `exclusive` leaves an element out of its own total, `reverse` starts at the end. */
export const cumulative: OpRecord = defineOp({
  name: "cumulative",
  summary: "running sums or products along an axis",
  attributes: {
    kind: choice(["sum", "prod"]),
    axis: integer(-(2 ** 31)),
    exclusive: flag(false),
    reverse: flag(false),
  },
  infer(inputs, { axis }) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" }, NUMBER_INPUT);
    axisOf(axis, x.shape.length);
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { kind, axis, exclusive, reverse } }) {
    const { outer, size, inner } = aroundAxis(x!.shape, axisOf(axis, x!.shape.length));
    /** Visits each line; a total starts anew where `i` is 0. */
    const along = (visit: (at: number, i: number) => void) => {
      for (let line = 0; line < outer * inner; line++) {
        const start = Math.floor(line / inner) * size * inner + line % inner;
        for (let i = 0; i < size; i++) visit(start + (reverse ? size - 1 - i : i) * inner, i);
      }
    };
    if (isWide(x!.dtype)) {
      const from = x!.data as BigInt64Array, to = out!.data as BigInt64Array;
      let total = 0n;
      along((at, i) => {
        if (i === 0) total = kind === "sum" ? 0n : 1n;
        if (exclusive) to[at] = total;
        total = BigInt.asIntN(64, kind === "sum" ? total + from[at]! : total * from[at]!);
        if (!exclusive) to[at] = total;
      });
      return;
    }
    const from = numbersOf(x!), results = new Float64Array(from.length);
    let total = 0;
    along((at, i) => {
      if (i === 0) total = kind === "sum" ? 0 : 1;
      if (exclusive) results[at] = total;
      total = kind === "sum" ? total + from[at]! : total * from[at]!;
      if (!exclusive) results[at] = total;
    });
    storeNumbers(out!, results);
  },
  cases: (random) => [
    ...(["sum", "prod"] as const).flatMap((kind) =>
      [0, 1, 2].flatMap((axis) =>
        [false, true].flatMap((exclusive) =>
          [false, true].map((reverse) => ({
            name: `${kind} along ${axis}${exclusive ? ", exclusive" : ""}${
              reverse ? ", reverse" : ""
            }`,
            inputs: [random.input([2, 5, 7])],
            attributes: { kind, axis, exclusive, reverse },
          }))
        )
      )
    ),
    ...[false, true].map((exclusive) => ({
      name: `a long line${exclusive ? ", exclusive, reverse" : ""}`,
      inputs: [random.input([2, 2100, 3])],
      attributes: { kind: "sum" as const, axis: 1, exclusive, reverse: exclusive },
    })),
  ],
});
