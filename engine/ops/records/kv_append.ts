// kv_append: writes new keys or values into the cache at their positions, in place (spec TL-12). Each
// row names the slot (session) whose cache it goes to. Floats are rounded to the cache's type here.

import { CACHE_TYPES, checkCache, writeCacheRow } from "../cache_rows.ts";
import { defineOp } from "../define_op.ts";
import { getElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { rowsOfHeads } from "../row_cut.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";

/** (cache state f32|f16|q8_0[C, H, D], x f32[M, H, D], positions i32[M], slots i32[M]) → the cache. */
export const kvAppend: OpRecord = defineOp({
  name: "kv_append",
  summary: "writes rows into a cache at their positions, in place",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 4);
    const cache = requireInput(inputs, { index: 0, name: "cache", dtype: CACHE_TYPES, rank: 3 });
    const x = requireInput(inputs, { index: 1, name: "x", rank: 3 });
    const positions = requireInput(inputs, { index: 2, name: "positions", dtype: "i32", rank: 1 });
    const slots = requireInput(inputs, { index: 3, name: "slots", dtype: "i32", rank: 1 });
    requireEqual(cache.shape[1]!, { b: x.shape[1]!, what: "the heads of the cache and of x" });
    requireEqual(cache.shape[2]!, {
      b: x.shape[2]!,
      what: "the head widths of the cache and of x",
    });
    requireEqual(x.shape[0]!, { b: positions.shape[0]!, what: "the rows of x and the positions" });
    requireEqual(x.shape[0]!, { b: slots.shape[0]!, what: "the rows of x and the slots" });
    checkCache(cache);
    return [{ dtype: cache.dtype, shape: cache.shape }];
  },
  rowwise: ({ inputs: [, x] }) => rowsOfHeads(x!, [1]),
  reference({ inputs: [cache, x, positions, slots], stateOf }) {
    for (let row = 0; row < x!.shape[0]!; row++) {
      const target = stateOf(0, getElement(slots!, row));
      const position = getElement(positions!, row);
      writeCacheRow(target, { position, capacity: cache!.shape[0]!, rows: x!, row });
    }
  },
  inPlace: () => ({ 0: 0 }),
  cases: (random) => [
    {
      name: "f16, halfway between two values",
      inputs: [
        {
          role: "state" as const,
          dtype: "f16" as const,
          shape: [12, 2, 20],
          slots: [random.normal(480), random.normal(480)],
        },
        {
          role: "input" as const,
          dtype: "f32" as const,
          shape: [1, 2, 20],
          data: Float32Array.from({ length: 40 }, (_, i) => 1 + (2 * i + 1) * 2 ** -11),
        },
        random.indices([3]),
        random.indices([1]),
      ],
    },
    ...([["f32", 20], ["f16", 20], ["q8_0", 64]] as const).flatMap(([dtype, width]) =>
      [[], [0], [11], [3, 4, 5, 6, 7]].map((positions) => ({
        name: `${dtype}, positions ${positions.join(" ")}`,
        inputs: [
          {
            role: "state" as const,
            dtype,
            shape: [12, 2, width],
            slots: [random.normal(24 * width), random.normal(24 * width)],
          },
          random.input([positions.length, 2, width]),
          random.indices(positions),
          random.indices(positions.map((position) => position % 2)),
        ],
      }))
    ),
  ],
  tolerance: { ofLargest: 0, reason: "a copy, or one rounding to nearest even" },
});
