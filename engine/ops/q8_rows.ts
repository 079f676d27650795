// Values in 8-bit rows (spec LF-3, MD-11): signed codes in groups of 32. A group's scale is its largest magnitude / 127
// in float32; q = x / scale rounded to nearest, ties to even, within ±127. A few outliers stay as they are where a device keeps
// them (quant/q8_activation.ts), and count as 0 in their group. The bytes in memory are a backend's business
// (quant/q8_activation.ts); here a q8 value is the numbers it stands for. A q8_low value is turned first, its groups are of 64, and
// sums of eight codes are bounded too, by a larger scale where they would not be.

import { INT7_GROUP, turnColumns, X_FACTOR } from "../../quant/int7_groups.ts";
import {
  lowScale,
  OUTLIER_RUN,
  outlierRuns,
  Q8_GROUP,
  takeOutliers,
} from "../../quant/q8_activation.ts";
import type { DataType, TensorType } from "../graph/graph.ts";
import { type AttributeRule, choice } from "./attributes.ts";
import { getElement, type HostTensor, setElement } from "./host_tensor.ts";
import type { Tolerance } from "./op_case.ts";
import { roundToEven } from "../../functions/special.ts";
import { lastDim, requireStatic } from "./shape_rules.ts";

/** Attribute of ops that can write their result as 8-bit rows. */
export const RESULT_TYPE: AttributeRule<"f32" | "q8"> = choice(["f32", "q8"], "f32");

/** Types of 8-bit rows. */
export type Q8Type = "q8" | "q8_low";

/** Whether values are 8-bit rows, which no kernel moves or reads element by element. */
export function isQ8(dtype: DataType): dtype is Q8Type {
  return dtype === "q8" || dtype === "q8_low";
}

/**
 * The quantised type of a float type.
 *
 * @throws {RangeError} If rows are not a known multiple of 32 long.
 */
export function inferQ8(x: TensorType, dtype: Q8Type = "q8"): TensorType {
  const width = requireStatic(lastDim(x), "the last dim of x");
  if (width === 0 || width % Q8_GROUP !== 0) {
    throw new RangeError(`the last dim of x must be a multiple of ${Q8_GROUP}: it is ${width}`);
  }
  return { dtype, shape: x.shape };
}

/** The type of a result that is computed as floats and written as `to`. */
export function resultOf(x: Pick<TensorType, "shape">, to: DataType): TensorType {
  const floats: TensorType = { dtype: "f32", shape: x.shape };
  return to === "q8" ? inferQ8(floats) : floats;
}

/** The definition; `x` and `out` may be one tensor. */
export function quantizeGroups(x: HostTensor, out: HostTensor): void {
  roundGroups(x, { out, most: 127 });
}

/** The same with another largest code, or with low sums. */
export function roundGroups(
  x: HostTensor,
  { out, most, isLow = false }: {
    readonly out: HostTensor;
    readonly most: number;
    readonly isLow?: boolean;
  },
): void {
  const rows = Float32Array.from({ length: x.data.length }, (_, i) => getElement(x, i));
  if (isLow) turnColumns(rows, X_FACTOR);
  const size = isLow ? INT7_GROUP : Q8_GROUP, width = x.shape.at(-1)!;
  const outliers = most === 127 && !isLow
    ? takeRowOutliers(rows, width)
    : new Map<number, number>();
  for (let group = 0, end = 0; group < rows.length; group = end) {
    // The last one of a row may be half as long.
    end = Math.min(group + size, (Math.floor(group / width) + 1) * width);
    const values = rows.subarray(group, end);
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const plain = Math.fround(largest / most);
    const scale = isLow ? lowScale(values, plain) : plain;
    values.forEach((value, i) => {
      const ratio = scale === 0 ? 0 : Math.fround(value / scale);
      const quantized = Math.min(most, Math.max(-most, roundToEven(ratio)));
      setElement(out, { index: group + i, value: outliers.get(group + i) ?? quantized * scale });
    });
  }
}

/** Outliers of rows by where they are; they become 0. */
function takeRowOutliers(rows: Float32Array, width: number): Map<number, number> {
  const values = rows.slice(), found = new Map<number, number>(), runs = outlierRuns(width);
  for (let row = 0; row < rows.length; row += width) {
    for (let run = 0; run < runs; run++) {
      const from = row + run * OUTLIER_RUN,
        to = run === runs - 1 ? row + width : from + OUTLIER_RUN;
      for (const at of takeOutliers(rows.subarray(from, to))) {
        found.set(from + at, values[from + at]!);
      }
    }
  }
  return found;
}

/** Sizes of the cases of ops that quantise. */
export const q8Sizes: readonly { readonly rows: number; readonly width: number }[] = [
  ...[0, 1, 2, 7].map((rows) => ({ rows, width: 64 })),
  ...[32, 96, 128, 576].map((width) => ({ rows: 3, width })),
];

/** Of results in 8-bit rows. */
export const Q8_STEP: Tolerance = {
  ofLargest: 1 / 126,
  reason: "one 8-bit step where a rounding tie falls the other way",
};
