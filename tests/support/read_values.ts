// A file's tensors as numbers.

import type { WeightFile } from "../../engine/formats/source.ts";
import { readTensorRows } from "../../engine/formats/tensor_rows.ts";
import { getFormat } from "../../quant/mod.ts";

/** Values of a tensor. */
export async function valuesOf(file: WeightFile, name: string): Promise<Float32Array> {
  const tensor = file.tensors.get(name)!;
  const parts: number[] = [];
  for await (const { values } of readTensorRows(tensor, { format: getFormat(tensor.format) })) {
    parts.push(...values);
  }
  return Float32Array.from(parts);
}
