// max_roi_pool: regions of a plane, rounded to whole elements and cut into bins of whole elements, of
// which the largest is taken; an empty bin is 0.
//
// Girshick 2015, "Fast R-CNN", section 2.1.

import { integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS } from "../host_numbers.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x [N, C, H, W], regions [R, 5] (item, x1, y1, x2, y2)) → [R, C, height, width]. */
export const maxRoiPool: OpRecord = defineOp({
  name: "max_roi_pool",
  summary: "largest elements of the bins of regions",
  attributes: { height: integer(1), width: integer(1), scale: number() },
  infer(inputs, { height, width }) {
    checkInputCount(inputs, 2);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, rank: 4 });
    const regions = requireInput(inputs, { index: 1, name: "regions", dtype: x.dtype, rank: 2 });
    return [{ dtype: x.dtype, shape: [regions.shape[0]!, x.shape[1]!, height, width] }];
  },
  reference({ inputs: [x, regions], outputs: [out], attributes: { scale } }) {
    const [, channels, height, width] = x!.shape as [number, number, number, number];
    const [, , rows, columns] = out!.shape as [number, number, number, number];
    for (let i = 0; i < out!.data.length; i++) {
      const column = i % columns, row = Math.floor(i / columns) % rows;
      const c = Math.floor(i / (columns * rows)) % channels;
      const r = Math.floor(i / (columns * rows * channels));
      const [x1, y1, x2, y2] = [1, 2, 3, 4].map((k) =>
        Math.round(getElement(regions!, 5 * r + k) * scale)
      ) as [number, number, number, number];
      const bins = (from: number, to: number, count: number, at: number, size: number) => {
        const step = Math.max(to - from + 1, 1) / count;
        const clamp = (value: number) => Math.min(Math.max(value + from, 0), size);
        return [clamp(Math.floor(at * step)), clamp(Math.ceil((at + 1) * step))] as const;
      };
      const [top, bottom] = bins(y1, y2, rows, row, height);
      const [left, right] = bins(x1, x2, columns, column, width);
      const plane = (getElement(regions!, 5 * r) * channels + c) * height * width;
      let largest = bottom > top && right > left ? -Infinity : 0;
      for (let y = top; y < bottom; y++) {
        for (let z = left; z < right; z++) {
          largest = Math.max(largest, getElement(x!, plane + y * width + z));
        }
      }
      setElement(out!, { index: i, value: largest });
    }
  },
  cases: (random) => [{
    name: "regions inside and beyond the edge",
    inputs: [random.input([1, 2, 8, 8]), {
      role: "input",
      dtype: "f32",
      shape: [3, 5],
      data: Float32Array.of(0, 0, 0, 7, 7, 0, 2, 3, 5, 6, 0, 6, 6, 12, 12),
    }],
    attributes: { height: 2, width: 3, scale: 1 },
  }],
});
