// Weights that were taken out of a quantised tensor (quant/outliers.ts), as they lie in a file: three tensors
// beside it, which belong to it and are none of the model's own. They are checked when they are read, since
// kernels use columns for addresses.

import { readBytes } from "../byte_source.ts";
import type { SparseRows } from "../../quant/outliers.ts";
import { FormatError } from "../errors.ts";
import type { OutlierTensors, TensorInfo } from "./source.ts";

/** Names of the three tensors of a tensor, in the order in which they follow it. */
export function outlierNames(name: string): Readonly<Record<keyof OutlierTensors, string>> {
  return {
    starts: `${name}.outlier_starts`,
    columns: `${name}.outlier_columns`,
    values: `${name}.outlier_values`,
  };
}

/**
 * The outliers of a tensor, or undefined where it has none.
 *
 * @throws {FormatError} If they are not those of a matrix of its shape.
 */
export async function readOutliers(
  { name, shape, outliers, source }: TensorInfo,
): Promise<SparseRows | undefined> {
  if (!outliers) return undefined;
  const [rows, width] = shape as readonly [number, number];
  const count = outliers.values.shape[0]!;
  const isShaped = shape.length === 2 && outliers.starts.shape.join() === `${rows + 1}` &&
    outliers.columns.shape.join() === `${count}` && outliers.values.shape.length === 1 &&
    outliers.starts.format === "I32" && outliers.columns.format === "I32" &&
    outliers.values.format === "F32";
  if (!isShaped) throw broken("its outliers are not stated well");
  const starts = new Int32Array(await bufferOf(outliers.starts));
  const columns = new Int32Array(await bufferOf(outliers.columns));
  const values = new Float32Array(await bufferOf(outliers.values));
  const ascends = starts[0] === 0 && starts.at(-1) === count &&
    starts.every((start, row) => row === 0 || start >= starts[row - 1]!);
  if (!ascends) throw broken("the rows of its outliers do not follow each other");
  const outside = columns.findIndex((column) => column < 0 || column >= width);
  if (outside >= 0) {
    throw broken(`its outlier ${outside} is in column ${columns[outside]} of ${width}`);
  }
  return { starts, columns, values };

  function broken(message: string): FormatError {
    return new FormatError(message, {
      file: source.name,
      place: `tensor ${JSON.stringify(name)}`,
      remedy: "The file is damaged: fetch it again or quantise it anew",
    });
  }
}

async function bufferOf({ source, offset, byteLength }: TensorInfo): Promise<ArrayBuffer> {
  return (await readBytes(source, { offset, length: byteLength })).buffer;
}
