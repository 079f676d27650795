// affine_grid: the coordinates that grid_sample takes, of a plane or volume moved by an affine map.

import { dims, flag } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS } from "../host_numbers.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";

/** (theta [N, d, d + 1]) → [N, …d sizes, d]. */
export const affineGrid: OpRecord = defineOp({
  name: "affine_grid",
  summary: "coordinates of an affine map",
  attributes: { sizes: dims(), align_corners: flag() },
  infer(inputs, { sizes }) {
    checkInputCount(inputs, 1);
    const theta = requireInput(inputs, { index: 0, name: "theta", dtype: FLOATS, rank: 3 });
    requireEqual(theta.shape[1]!, {
      b: sizes.length,
      what: "the rows of theta and the spatial dims",
    });
    requireEqual(theta.shape[2]!, {
      b: sizes.length + 1,
      what: "the columns of theta and the spatial dims",
    });
    return [{ dtype: theta.dtype, shape: [theta.shape[0]!, ...sizes, sizes.length] }];
  },
  reference({ inputs: [theta], outputs: [out], attributes }) {
    const [batch, ...rest] = out!.shape as [number, ...number[]];
    const sizes = rest.slice(0, -1), rank = sizes.length;
    const places = sizes.reduce((a, b) => a * b, 1);
    const coordinate = (i: number, size: number) =>
      attributes.align_corners
        ? (size === 1 ? -1 : 2 * i / (size - 1) - 1)
        : (2 * i + 1) / size - 1;
    for (let n = 0; n < batch; n++) {
      for (let place = 0; place < places; place++) {
        // The last axis comes first.
        const at: number[] = [];
        for (let axis = rank - 1, left = place; axis >= 0; axis--) {
          at.push(coordinate(left % sizes[axis]!, sizes[axis]!));
          left = Math.floor(left / sizes[axis]!);
        }
        for (let row = 0; row < rank; row++) {
          const entry = (n * rank + row) * (rank + 1);
          let sum = getElement(theta!, entry + rank);
          at.forEach((value, i) => sum += value * getElement(theta!, entry + i));
          setElement(out!, { index: (n * places + place) * rank + row, value: sum });
        }
      }
    }
  },
  cases: (random) =>
    [true, false].flatMap((align_corners) => [
      { inputs: [random.input([2, 2, 3])], attributes: { sizes: [3, 5], align_corners } },
      { inputs: [random.input([1, 3, 4])], attributes: { sizes: [2, 3, 4], align_corners } },
    ]),
});
