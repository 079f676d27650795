// append_rows: a cache of keys or values with new rows behind the valid ones of each item, which may be
// fewer than it holds. What is behind the new rows is 0. The caches of a Model's sessions are states
// (kv_append); these are tensors, as ONNX graphs carry them along.

import { dim, integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import { FLOATS } from "../host_numbers.ts";
import { getElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { heads, type Layout } from "../attention_rows.ts";
import {
  checkInputCount,
  optionalInput,
  refuseMisfit,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/**
 * (rows [B, heads, S, D] or [B, S, heads · D], past [B, heads, P, D]?, counts i32|i64[B]) →
 * [B, heads, capacity, D], where `counts` are the valid rows after appending.
 */
export const appendRows: OpRecord = defineOp({
  name: "append_rows",
  summary: "a cache with new rows behind the valid ones",
  attributes: { heads: integer(1), capacity: dim() },
  infer(inputs, attributes) {
    checkInputCount(inputs, 3);
    const rows = requireInput(inputs, { index: 0, name: "rows", dtype: FLOATS, minRank: 3 });
    const past = optionalInput(inputs, { index: 1, name: "past", dtype: rows.dtype, rank: 4 });
    const counts = requireInput(inputs, {
      index: 2,
      name: "counts",
      dtype: ["i32", "i64"],
      rank: 1,
    });
    if (rows.shape.length === 4) {
      refuseMisfit(rows.shape[1]!, { sizes: [attributes.heads], what: "the heads of rows" });
    }
    const { batch, width } = heads(rows.shape, attributes.heads) as Layout<Dim>;
    refuseMisfit(counts.shape[0]!, { sizes: [batch], what: "the number of counts" });
    if (past) {
      requireEqual(past.shape[0]!, { b: batch, what: "the batches of past and rows" });
      requireEqual(past.shape[1]!, { b: attributes.heads, what: "the heads of past and rows" });
      requireEqual(past.shape[3]!, { b: width, what: "the head widths of past and rows" });
    }
    return [{ dtype: rows.dtype, shape: [batch, attributes.heads, attributes.capacity, width] }];
  },
  reference({ inputs: [rows, past, counts], outputs: [out], attributes }) {
    const from = heads(rows!.shape, attributes.heads) as Layout<number>;
    const { batch, rows: fresh, width, joined } = from;
    const capacity = out!.shape[2]!, held = past?.shape[2] ?? 0;
    const target = out!.data as Float32Array, source = rows!.data as Float32Array;
    for (let b = 0; b < batch; b++) {
      const start = Math.max(0, getElement(counts!, b) - fresh);
      if (start > held || start + fresh > capacity && start >= capacity) {
        throw new RangeError(
          `Cannot append at row ${start}: the cache holds ${held} of ${capacity}`,
        );
      }
      for (let h = 0; h < attributes.heads; h++) {
        const plane = (b * attributes.heads + h) * capacity * width;
        if (past) {
          const at = (b * attributes.heads + h) * held * width;
          target.set((past.data as Float32Array).subarray(at, at + start * width), plane);
        }
        for (let row = 0; row < Math.min(fresh, capacity - start); row++) {
          const at = joined
            ? ((b * fresh + row) * attributes.heads + h) * width
            : ((b * attributes.heads + h) * fresh + row) * width;
          target.set(source.subarray(at, at + width), plane + (start + row) * width);
        }
      }
    }
  },
  cases: (random) =>
    [{ rows: [2, 3, 8], past: [2, 2, 5, 4], counts: [6, 8], capacity: 8 }, {
      rows: [1, 2, 3, 4],
      past: undefined,
      counts: [3],
      capacity: 3,
    }].map(({ rows, past, counts, capacity }) => ({
      name: `[${rows}] behind [${past ?? "nothing"}]`,
      inputs: [random.input(rows), past && random.input(past), random.indices(counts)],
      attributes: { heads: 2, capacity },
    })),
  tolerance: { ofLargest: 0, reason: "a copy" },
});
