// What networks are told of the size of a picture, beside the sample that has it.

import type { Tensor } from "../../models/networks/network.ts";
import type { PipelineRule } from "./pipeline_rules.ts";

/** Inputs of one picture, without the dim of the batch. */
export function sizeInputs(
  rule: PipelineRule["sizes"],
  { width, height }: { readonly width: number; readonly height: number },
): Readonly<Record<string, Tensor>> {
  const numbers = (...values: readonly number[]): Tensor => ({
    data: Float32Array.from(values),
    dims: [values.length],
  });
  // SD XL (arXiv 2307.01952, section 2.2): the size before cropping, where it was cut, and the size behind that.
  if (rule === "time_ids") return { time_ids: numbers(height, width, 0, 0, height, width) };
  if (rule === "resolution") {
    return { resolution: numbers(height, width), aspect_ratio: numbers(height / width) };
  }
  return {};
}
