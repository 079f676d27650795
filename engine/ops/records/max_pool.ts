// max_pool: the largest element of sliding windows, and where it lies in the whole tensor, counted
// row-major or with the two last spatial dims swapped (`column_major`).

import { flag } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { BYTES, FLOATS } from "../host_numbers.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { Attributes, OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";
import { eachWindow, POOL_CASES, POOL_RULES, poolLoops, poolShape } from "./pool.ts";

/** Whether places of the largest elements are asked for, and counted by columns. */
const PLACES: readonly Attributes[] = [
  {},
  { indices: true },
  { indices: true, column_major: true },
];

/** (x [N, C, …]) → ([N, C, …], i64[N, C, …]?). */
export const maxPool: OpRecord = defineOp({
  name: "max_pool",
  summary: "largest element of sliding windows",
  attributes: { ...POOL_RULES, indices: flag(false), column_major: flag(false) },
  infer(inputs, attributes) {
    checkInputCount(inputs, 1);
    const { dtype, shape } = requireInput(inputs, {
      index: 0,
      name: "x",
      dtype: [...FLOATS, ...BYTES],
      minRank: 3,
    });
    const pooled = poolShape({ dtype, shape }, attributes);
    const values = { dtype, shape: pooled };
    return attributes.indices ? [values, { dtype: "i64", shape: pooled }] : [values];
  },
  reference({ inputs: [x], outputs: [out, indices], attributes }) {
    const loops = poolLoops(x!.shape, { out: out!.shape, attributes });
    const [depth, height, width] = loops.size;
    eachWindow(loops, {
      inputCount: x!.data.length,
      outputCount: out!.data.length,
      visit: (o, inside) => {
        let largest = -Infinity, place = inside[0] ?? -1;
        for (const i of inside) {
          const value = getElement(x!, i);
          if (value > largest || Number.isNaN(value)) {
            largest = value;
            place = i;
          }
        }
        setElement(out!, { index: o, value: largest });
        if (!indices) return;
        const column = place % width, row = Math.floor(place / width) % height;
        const plane = Math.floor(place / (width * height));
        const swapped = depth === 1
          ? plane * width * height + column * height + row
          : Math.floor(plane / depth) * depth * width * height +
            (column * height + row) * depth + plane % depth;
        setElement(indices, { index: o, value: attributes.column_major ? swapped : place });
      },
    });
  },
  cases: (random) =>
    POOL_CASES.flatMap(([x, attributes]) =>
      PLACES.map((places) => ({
        inputs: [random.input(x)],
        attributes: { ...attributes, ...places },
      }))
    ),
});
