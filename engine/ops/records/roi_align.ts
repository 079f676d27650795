// roi_align: regions of a plane, each cut into bins whose samples, read bilinearly, are averaged or of
// which the largest is taken. Nothing is rounded to whole elements.
//
// He et al. 2017, "Mask R-CNN", section 3.

import { choice, flag, integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS, numbersOf } from "../host_numbers.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";

/** (x [N, C, H, W], regions [R, 4] (x1, y1, x2, y2), batch i64[R]) → [R, C, height, width]. */
export const roiAlign: OpRecord = defineOp({
  name: "roi_align",
  summary: "regions of a plane in bins, read bilinearly",
  attributes: {
    height: integer(1),
    width: integer(1),
    kind: choice(["average", "max"]),
    /** Samples a bin and axis; 0: as many as elements. */
    samples: integer(0),
    /** From regions' coordinates to those of x. */
    scale: number(),
    half_pixel: flag(),
  },
  infer(inputs, { height, width }) {
    checkInputCount(inputs, 3);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, rank: 4 });
    const regions = requireInput(inputs, { index: 1, name: "regions", dtype: x.dtype, rank: 2 });
    const batch = requireInput(inputs, { index: 2, name: "batch", dtype: ["i64", "i32"], rank: 1 });
    requireEqual(regions.shape[0]!, { b: batch.shape[0]!, what: "the regions and their items" });
    return [{ dtype: x.dtype, shape: [regions.shape[0]!, x.shape[1]!, height, width] }];
  },
  reference({ inputs: [x, regions, batch], outputs: [out], attributes }) {
    const [, channels, height, width] = x!.shape as [number, number, number, number];
    const values = numbersOf(x!), { kind, scale, half_pixel, samples } = attributes;
    const bins = attributes.height * attributes.width;

    for (let r = 0; r < regions!.shape[0]!; r++) {
      const shift = half_pixel ? 0.5 : 0;
      const [x1, y1, x2, y2] = [0, 1, 2, 3].map((i) =>
        getElement(regions!, 4 * r + i) * scale - shift
      ) as [number, number, number, number];
      // Without half pixels a region is at least one element.
      const least = half_pixel ? -Infinity : 1;
      const binHeight = Math.max(y2 - y1, least) / attributes.height;
      const binWidth = Math.max(x2 - x1, least) / attributes.width;
      const rows = samples || Math.ceil(binHeight), columns = samples || Math.ceil(binWidth);
      for (let i = 0; i < channels * bins; i++) {
        const c = Math.floor(i / bins), bin = i % bins;
        const plane = (getElement(batch!, r) * channels + c) * height * width;
        const top = y1 + Math.floor(bin / attributes.width) * binHeight;
        const left = x1 + (bin % attributes.width) * binWidth;
        let sum = 0, largest = -Infinity;
        for (let sample = 0; sample < rows * columns; sample++) {
          const y = top + (Math.floor(sample / columns) + 0.5) * binHeight / rows;
          const z = left + (sample % columns + 0.5) * binWidth / columns;
          for (const { index, weight } of corners(y, { x: z, height, width })) {
            const part = weight * values[plane + index]!;
            sum += part;
            largest = Math.max(largest, part);
          }
        }
        const average = sum / Math.max(rows * columns, 1);
        setElement(out!, {
          index: r * channels * bins + i,
          value: kind === "average" ? average : largest,
        });
      }
    }
  },
  cases: (random) =>
    (["average", "max"] as const).map((kind) => ({
      name: kind,
      inputs: [
        random.input([2, 2, 8, 8]),
        {
          role: "input",
          dtype: "f32",
          shape: [3, 4],
          data: Float32Array.of(0, 0, 7, 7, 2, 3, 5, 6, 5, 5, 12, 12),
        },
        random.indices([0, 1, 0]),
      ],
      attributes: {
        ...{ height: 2, width: 3, kind, samples: kind === "max" ? 2 : 0 },
        ...{ scale: 0.5, half_pixel: kind === "max" },
      },
    })),
});

/** The four elements around a place; all with weight 0 where it is more than one element outside. */
function corners(
  y: number,
  { x, height, width }: { readonly x: number; readonly height: number; readonly width: number },
): { readonly index: number; readonly weight: number }[] {
  if (y < -1 || y > height || x < -1 || x > width) return [{ index: 0, weight: 0 }];
  const row = Math.min(Math.max(y, 0), height - 1), column = Math.min(Math.max(x, 0), width - 1);
  const top = Math.floor(row), left = Math.floor(column);
  const bottom = Math.min(top + 1, height - 1), right = Math.min(left + 1, width - 1);
  const down = row - top, across = column - left;
  return [
    { index: top * width + left, weight: (1 - down) * (1 - across) },
    { index: top * width + right, weight: (1 - down) * across },
    { index: bottom * width + left, weight: down * (1 - across) },
    { index: bottom * width + right, weight: down * across },
  ];
}
