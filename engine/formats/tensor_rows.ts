// A tensor's values as float32, a run of rows at a time, so that one larger than memory can be worked on.

import { formatBytes, type NumberFormat } from "../../quant/mod.ts";
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
const RUN_VALUES = 1 << 20;

/** Reads and decodes a tensor. */
export async function* readTensorRows(
  { source, offset, shape, byteLength }: TensorInfo,
  format: NumberFormat,
): AsyncGenerator<TensorRows, void, void> {
  const count = shape.reduce((product, size) => product * size, 1);
  const columns = shape.at(-1) ?? 1;
  if (count === 0 || byteLength === 0) return;
  const run = Math.min(count, Math.max(1, Math.floor(RUN_VALUES / columns)) * columns);
  const bytes = new Uint8Array(formatBytes(format, run));
  const values = new Float32Array(run);
  for (let start = 0; start < count; start += run) {
    const length = Math.min(run, count - start);
    const part = bytes.subarray(0, formatBytes(format, length));
    const decoded = values.subarray(0, length);
    await source.readInto(offset + formatBytes(format, start), part);
    format.decode(part, decoded);
    yield { start, bytes: part, values: decoded };
  }
}
