// tensor_scatter: a cache with new rows written along an axis, from an index that each item of the batch has of
// its own; what passes the end is an error, or goes on at the start (`circular`).

import { flag, integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { requireTyped } from "../data_types.ts";
import { elementCount, getElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, optionalInput, requireEqual } from "../shape_rules.ts";

/** (cache [B, …, C, …], update [B, …, S, …], starts i64[B]?) → like cache. */
export const tensorScatter: OpRecord = defineOp({
  name: "tensor_scatter",
  summary: "a cache with new rows written along an axis",
  attributes: { axis: integer(1), circular: flag(false) },
  infer(inputs, { axis }) {
    checkInputCount(inputs, 3);
    const cache = requireTyped(inputs, 0, "cache"), update = requireTyped(inputs, 1, "update");
    optionalInput(inputs, 2, "starts", { dtype: ["i32", "i64"], rank: 1 });
    if (cache.shape.length !== update.shape.length || axis >= cache.shape.length) {
      throw new RangeError(`axis ${axis}: cache and update must have one rank above it`);
    }
    cache.shape.forEach((dim, i) => {
      if (i !== axis) requireEqual(dim, update.shape[i]!, `dim ${i} of cache and update`);
    });
    return [{ dtype: cache.dtype, shape: cache.shape }];
  },
  reference({ inputs: [cache, update, starts], outputs: [out], attributes: { axis, circular } }) {
    const capacity = cache!.shape[axis]!, rows = update!.shape[axis]!;
    const inner = elementCount(cache!.shape.slice(axis + 1));
    const outer = elementCount(cache!.shape.slice(0, axis)), batch = cache!.shape[0]!;
    const data = out!.data as Float32Array, fresh = update!.data as Float32Array;
    data.set(cache!.data as Float32Array);
    for (let o = 0; o < outer; o++) {
      const start = starts ? getElement(starts, Math.floor(o / (outer / batch))) : 0;
      for (let row = 0; row < rows; row++) {
        const at = circular ? (start + row) % capacity : start + row;
        if (at < 0 || at >= capacity) {
          throw new RangeError(`Cannot write row ${at}: the cache holds ${capacity}`);
        }
        const from = (o * rows + row) * inner;
        data.set(fresh.subarray(from, from + inner), (o * capacity + at) * inner);
      }
    }
  },
  kernels: { wasm: [], gpu: [] },
});
