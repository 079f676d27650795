// gather_nd: slices of a tensor by index tuples, which are the rows of `indices`.

import { integer } from "../attributes.ts";
import { INDEX_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import { stridesOf } from "../host_numbers.ts";
import { elementCount, type HostTensor } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, lastDim, requireEqual, requireStatic } from "../shape_rules.ts";
import { indicesOf } from "./gather.ts";

/** (x T[b…, d…], indices i32/i64[b…, i…, K]) → T[b…, i…, rest of d]; b are the batch dims. */
export const gatherNd: OpRecord = defineOp({
  name: "gather_nd",
  summary: "slices by index tuples",
  attributes: { batch_dims: integer(0, 0) },
  movedInputs: [0],
  infer(inputs, { batch_dims: batch }) {
    checkInputCount(inputs, 2);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    const indices = requireTyped(inputs, { index: 1, name: "indices" }, INDEX_INPUT);
    const depth = tupleLength(indices, x.shape.length - batch);
    if (batch >= indices.shape.length) {
      throw new RangeError(`indices must have more than ${batch} dims`);
    }
    for (let i = 0; i < batch; i++) {
      requireEqual(x.shape[i]!, { b: indices.shape[i]!, what: "batch dims" });
    }
    return [{
      dtype: x.dtype,
      shape: [...indices.shape.slice(0, -1), ...x.shape.slice(batch + depth)],
    }];
  },
  reference({ inputs: [x, indices], outputs: [out], attributes: { batch_dims: batch } }) {
    const { starts, run } = tupleStarts(x!.shape, { indices: indices!, batch });
    const from = x!.data as Uint8Array, to = out!.data as Uint8Array;
    starts.forEach((start, i) => to.set(from.subarray(start, start + run), i * run));
  },
  cases: (random) => [
    {
      name: "whole tuples",
      inputs: [random.input([3, 4]), { ...random.indices([0, 1, -1, 3]), shape: [2, 2] }],
    },
    {
      name: "rows",
      inputs: [random.input([3, 4, 5]), { ...random.indices([2, 0]), shape: [2, 1] }],
    },
    {
      name: "one batch dim",
      inputs: [random.input([2, 4, 5]), { ...random.indices([3, 1]), shape: [2, 1] }],
      attributes: { batch_dims: 1 },
    },
  ],
  tolerance: { ofLargest: 0, reason: "a copy" },
});

/**
 * Length of the index tuples.
 *
 * @throws {RangeError} If it is symbolic or above `most`.
 */
export function tupleLength(indices: TensorType, most: number): number {
  const length = requireStatic(lastDim(indices) ?? 0, "the last dim of indices");
  if (length > most) throw new RangeError(`tuples have ${length} indices: at most ${most}`);
  return length;
}

/** Where the slice of each index tuple begins in a tensor of `shape`, and how long it is. */
export function tupleStarts(
  shape: readonly number[],
  { indices, batch }: { readonly indices: HostTensor; readonly batch: number },
): { readonly starts: Float64Array; readonly run: number } {
  const depth = indices.shape.at(-1)!;
  const strides = stridesOf(shape);
  const run = elementCount(shape.slice(batch + depth));
  const tuples = elementCount(indices.shape.slice(0, -1));
  const batches = elementCount(shape.slice(0, batch));
  const perBatch = batches === 0 ? 0 : tuples / batches;
  const batchRun = elementCount(shape.slice(batch));
  const picks = indicesOf(indices, (i) => shape[batch + i % depth]!);
  const starts = Float64Array.from({ length: tuples }, (_, tuple) => {
    let start = Math.floor(tuple / perBatch) * batchRun;
    for (let i = 0; i < depth; i++) start += picks[tuple * depth + i]! * strides[batch + i]!;
    return start;
  });
  return { starts, run };
}
