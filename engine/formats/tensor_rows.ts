// A tensor's values as float32, a run of rows at a time, so that one larger than memory can be worked on.
// Reading settles at once, and awaiting it lets no event through: a pause before each run lets a signal fire,
// and runs are so short that whatever is made of one, by the slowest rounding too, takes less than a second.

import { formatBytes, type NumberFormat } from "../../quant/mod.ts";
import { addSparseRows } from "../../quant/outliers.ts";
import { pause } from "../pause.ts";
import { readOutliers } from "./outliers.ts";
import type { TensorInfo } from "./source.ts";

/** A run of rows. */
export interface TensorRows {
  /** Index of the first value in the tensor. */
  readonly start: number;
  /** As stored; valid until the next run. */
  readonly bytes: Uint8Array;
  /** Decoded; valid until the next run. */
  readonly values: Float32Array;
}

/** Values of a run, unless one row is longer. */
const RUN_VALUES = 1 << 17;

/** Runs that {@linkcode readTensorRows} cuts a tensor into, about. */
export function runsOf({ shape }: TensorInfo): number {
  return Math.ceil(shape.reduce((product, size) => product * size, 1) / RUN_VALUES);
}

/**
 * Reads and decodes a tensor, its outliers in their places.
 *
 * @param signal Stops between two runs, with its reason.
 */
export async function* readTensorRows(
  tensor: TensorInfo,
  { format, signal }: { readonly format: NumberFormat; readonly signal?: AbortSignal | undefined },
): AsyncGenerator<TensorRows, void, void> {
  const { source, offset, shape, byteLength } = tensor;
  const count = shape.reduce((product, size) => product * size, 1);
  const columns = shape.at(-1) ?? 1;
  if (count === 0 || byteLength === 0) return;
  const run = Math.min(count, Math.max(1, Math.floor(RUN_VALUES / columns)) * columns);
  const outliers = await readOutliers(tensor);
  const bytes = new Uint8Array(formatBytes(format, run));
  const values = new Float32Array(run);
  for (let start = 0; start < count; start += run) {
    await pause();
    signal?.throwIfAborted();
    const length = Math.min(run, count - start);
    const part = bytes.subarray(0, formatBytes(format, length));
    const decoded = values.subarray(0, length);
    await source.readInto(offset + formatBytes(format, start), part);
    format.decode(part, decoded);
    if (outliers) addSparseRows(decoded, columns, outliers, start / columns);
    yield { start, bytes: part, values: decoded };
  }
}
