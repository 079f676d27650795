// The outliers of a tensor while it is quantised: two passes over the file find the limit, a third takes them out
// run by run and puts them back to see what was lost; they are written behind the tensor.

import type { NumberFormat } from "../../quant/mod.ts";
import { createOutlierTaker, searchOutliers } from "../../quant/outliers.ts";
import { readTensorRows } from "../formats/tensor_rows.ts";
import type { NewFile } from "../io.ts";
import type { PlannedTensor } from "./plan.ts";

/** Outliers of one tensor; runs must come in order. */
export interface TensorOutliers {
  /** Replaces the outliers of a run by zeros. */
  takeFrom(values: Float32Array): void;
  /**
   * Puts them back into the run and into what was decoded of it.
   *
   * @param start Index of the first value in the tensor.
   * @param whole True: a whole outlier is stored, on top of what its zero became; else what that lacks.
   */
  putBack(start: number, values: Float32Array, decoded: Float32Array, whole: boolean): void;
  /** Writes starts, columns and values. */
  writeTo(output: NewFile): void;
}

/** Bytes of a tensor's outliers. */
export function outlierBytes(
  { tensor, outliers }: Pick<PlannedTensor, "tensor" | "outliers">,
): number {
  return outliers === 0 ? 0 : 4 * (tensor.shape[0]! + 1) + 8 * outliers;
}

/**
 * Finds the outliers of a tensor; undefined if none are wanted.
 *
 * @param checked Called with each run before it is looked at.
 */
export async function openOutliers(
  { tensor, outliers: count }: PlannedTensor,
  { source, checked, signal }: {
    readonly source: NumberFormat;
    readonly checked: (start: number, values: Float32Array) => void;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<TensorOutliers | undefined> {
  if (count === 0) return undefined;
  const search = searchOutliers(count);
  for (const look of [search.count, search.refine]) {
    for await (const { start, values } of readTensorRows(tensor, { format: source, signal })) {
      checked(start, values);
      look(values);
    }
  }
  const [rows, columns] = tensor.shape as readonly [number, number];
  const { take, taken } = createOutlierTaker(search.limit(), { rows, columns, count });
  return {
    takeFrom: take,
    putBack(start, values, decoded, whole) {
      for (let row = 0; row * columns < values.length; row++) {
        const first = start / columns + row;
        for (let e = taken.starts[first]!; e < taken.starts[first + 1]!; e++) {
          const at = row * columns + taken.columns[e]!;
          values[at] = taken.values[e]!;
          if (!whole) taken.values[e]! -= decoded[at]!;
          decoded[at]! += taken.values[e]!;
        }
      }
    },
    writeTo(output) {
      for (const { buffer } of [taken.starts, taken.columns, taken.values]) {
        output.write(new Uint8Array(buffer as ArrayBuffer));
      }
    },
  };
}
