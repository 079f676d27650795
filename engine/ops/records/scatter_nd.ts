// scatter_nd: a copy of a tensor in which slices are replaced by index tuples.

import { choice } from "../attributes.ts";
import { INDEX_INPUT, requireSameType, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { SCATTER_REDUCTIONS, scatterer } from "../reductions.ts";
import { checkInputCount, requireEqual } from "../shape_rules.ts";
import { tupleLength, tupleStarts } from "./gather_nd.ts";

/** (x T[d…], indices i32/i64[i…, K], updates T[i…, rest of d]) → T[d…]. */
export const scatterNd: OpRecord = defineOp({
  name: "scatter_nd",
  summary: "a copy with slices replaced by index tuples",
  attributes: { reduction: choice(SCATTER_REDUCTIONS, "none") },
  movedInputs: [0, 2],
  infer(inputs) {
    checkInputCount(inputs, 3);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    const indices = requireTyped(inputs, { index: 1, name: "indices" }, INDEX_INPUT);
    const updates = requireTyped(inputs, { index: 2, name: "updates" });
    requireSameType(x, { b: updates, what: "x and updates" });
    const depth = tupleLength(indices, x.shape.length);
    const expected = [...indices.shape.slice(0, -1), ...x.shape.slice(depth)];
    if (updates.shape.length !== expected.length) {
      throw new RangeError(`updates have ${updates.shape.length} dims: must be ${expected.length}`);
    }
    expected.forEach((dim, i) =>
      requireEqual(updates.shape[i]!, { b: dim, what: `dim ${i} of updates` })
    );
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x, indices, updates], outputs: [out], attributes }) {
    const { starts, run } = tupleStarts(x!.shape, { indices: indices!, batch: 0 });
    (out!.data as Uint8Array).set(x!.data as Uint8Array);
    const put = scatterer(attributes.reduction, { out: out!, updates: updates! });
    starts.forEach((start, tuple) => {
      for (let i = 0; i < run; i++) put(start + i, tuple * run + i);
    });
  },
  cases: (random) =>
    SCATTER_REDUCTIONS.flatMap((reduction) => [
      {
        inputs: [
          random.input([3, 4]),
          { ...random.indices([0, 1, -1, 3, 0, 1]), shape: [3, 2] },
          random.input([3]),
        ],
        attributes: { reduction },
      },
      {
        inputs: [
          random.input([3, 4]),
          { ...random.indices([2, 0]), shape: [2, 1] },
          random.input([2, 4]),
        ],
        attributes: { reduction },
      },
    ]),
});
