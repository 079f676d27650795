// Fewer heads of keys and values than a model was trained with (GQA, arXiv 2305.13245; Inferflow Eq. 8): the heads of a
// group are replaced by their mean. It is where training with fewer heads begins; without it a model gets
// worse. A matrix is pooled while it is read, and what comes out is float32.

import { formatBytes, getFormat } from "../../../quant/mod.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { countOf, derivedTensor, readUnits } from "../../formats/derived_tensor.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";

/**
 * Heads before and after.
 * @category Models
 */
export interface PoolSizes {
  /** Heads that there are. */
  readonly heads: number;
  /** Heads to make of them; must divide `heads`. */
  readonly kvHeads: number;
  /** Rows of a head. */
  readonly headDim: number;
}

const KEYS: OptionKeys<PoolSizes> = { heads: true, kvHeads: true, headDim: true };

/**
 * Means of the heads of each group: row d of head g becomes Σ_j W[g·n + j, d] / n, n = heads / kvHeads.
 *
 * @param weights f32[heads · headDim, columns], row by row; a bias has one column.
 * @returns f32[kvHeads · headDim, columns].
 * @throws {RangeError} If the sizes do not fit together.
 *
 * @example
 * ```ts
 * import { meanPoolKV } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const four = new Float32Array([1, 3, 10, 30]); // four heads of one row and one column
 * assertEquals([...meanPoolKV(four, { heads: 4, kvHeads: 2, headDim: 1 })], [2, 20]);
 * ```
 * @category Models
 */
export function meanPoolKV(weights: Float32Array, sizes: PoolSizes): Float32Array {
  checkOptionKeys(sizes, { of: "meanPoolKV()", known: KEYS });
  checkSizes(sizes);
  const { heads, kvHeads, headDim } = sizes;
  const columns = weights.length / (heads * headDim);
  if (!Number.isInteger(columns)) {
    throw new RangeError(
      `Cannot pool ${weights.length} numbers: they are no rows of ${heads} heads of ${headDim}`,
    );
  }
  const group = heads / kvHeads;
  const pooled = new Float32Array(kvHeads * headDim * columns);
  for (let row = 0; row < kvHeads * headDim; row++) {
    const sources = sourceRows(row, group, headDim);
    for (let column = 0; column < columns; column++) {
      const sum = sources.reduce((all, source) => all + weights[source * columns + column]!, 0);
      pooled[row * columns + column] = sum / group;
    }
  }
  return pooled;
}

function checkSizes({ heads, kvHeads, headDim }: PoolSizes): void {
  const counts = [heads, kvHeads, headDim];
  if (counts.every((count) => Number.isInteger(count) && count > 0) && heads % kvHeads === 0) {
    return;
  }
  throw new RangeError(`Cannot pool ${heads} heads to ${kvHeads}: their number must divide`);
}

function sourceRows(row: number, group: number, headDim: number): number[] {
  const head = Math.floor(row / headDim) * group;
  return Array.from({ length: group }, (_, j) => (head + j) * headDim + row % headDim);
}

/**
 * A tensor [heads · headDim, …] with the heads of each group pooled, as F32.
 *
 * @throws {RangeError} If the sizes do not fit together.
 */
export function poolHeads(tensor: TensorInfo, sizes: PoolSizes): TensorInfo {
  checkSizes(sizes);
  const { heads, kvHeads, headDim } = sizes;
  const group = heads / kvHeads;
  const { name, shape, source, offset } = tensor;
  const [, ...rest] = shape;
  const columns = countOf(rest);
  const format = getFormat(tensor.format);
  const inBytes = formatBytes(format, columns), outBytes = 4 * columns;
  async function pooledRows(first: number, end: number): Promise<ArrayBuffer> {
    const pooled = new Float32Array((end - first) * columns);
    const bytes = new Uint8Array(inBytes), values = new Float32Array(columns);
    for (let row = first; row < end; row++) {
      const sum = new Float64Array(columns);
      for (const from of sourceRows(row, group, headDim)) {
        const read = source.readInto(offset + from * inBytes, bytes);
        if (read) await read;
        format.decode(bytes, values);
        for (let i = 0; i < columns; i++) sum[i]! += values[i]!;
      }
      pooled.set(sum.map((value) => value / group), (row - first) * columns);
    }
    return pooled.buffer;
  }
  const rows = kvHeads * headDim, pooledName = `${name} pooled to ${kvHeads}`;
  return derivedTensor(tensor, {
    ...{ name: pooledName, label: pooledName, format: "F32", shape: [rows, ...rest] },
    byteLength: rows * outBytes,
    readInto: readUnits({ length: outBytes }, pooledRows),
  });
}
