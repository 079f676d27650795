// Kernels on activations and state: everything but the matmul family. See opcodes.ts. Operands are byte
// addresses unless they are counts; `rows`, `count` and other extents may be symbolic. `group` is the rows of a
// chunk, which links of a chain have alike (engine/ops/row_cut.ts).

import type { OpcodeRecord } from "./opcode_record.ts";

/** Numbers of the element types of keys and values in instructions (`cache`). */
export const CACHE_KINDS = { f32: 0, f16: 1, q8_0: 2 } as const;

/** Table of these kernels. */
export const ACTIVATION_OPCODES = {
  /** Adds 1 to `total` cells, a chunk each; traps at chunk `trap_at` (none: -1). Tests the machine. */
  machine_check: {
    file: "machine/check",
    operands: { cells: "u32", total: "u32", trap_at: "u32" },
  },
  /** `w` is 0 where there is none; then `base` is ignored. */
  rms_norm: {
    file: "rows/norm",
    operands: {
      ...{ x: "u32", w: "u32", y: "u32", rows: "u32", columns: "u32", group: "u32" },
      ...{ epsilon: "f32", base: "f32" },
    },
  },
  /** `w` and `b` are 0 where there is none. */
  layer_norm: {
    file: "rows/norm",
    operands: {
      ...{ x: "u32", w: "u32", b: "u32", y: "u32", rows: "u32", columns: "u32", group: "u32" },
      ...{ epsilon: "f32" },
    },
  },
  /** `pairs` = half the rotated channels. `spans` 0: none; else rows with more than `beyond` take `long`. */
  rope_table: {
    file: "attention/rope",
    operands: {
      ...{ positions: "u32", frequencies: "u32", y: "u32", rows: "u32", pairs: "u32" },
      ...{ magnitude: "f32", spans: "u32", long: "u32", beyond: "u32" },
    },
  },
  rope: {
    file: "attention/rope",
    operands: {
      ...{ x: "u32", table: "u32", y: "u32", rows: "u32", group: "u32", heads: "u32" },
      ...{ head_size: "u32", pairs: "u32", interleaved: "u32" },
    },
  },
  /**
   * `state`: of its first page; `page_table`: for each slot, the numbers of the pages, of 64 rows each, that
   * `capacity` rows take; `width`: elements of one cache row.
   */
  kv_append: {
    file: "attention/kv",
    operands: {
      ...{ x: "u32", state: "u32", positions: "u32", slots: "u32", page_table: "u32" },
      ...{
        slot_count: "u32",
        rows: "u32",
        group: "u32",
        width: "u32",
        capacity: "u32",
        cache: "u32",
      },
    },
  },
  /**
   * `k`, `v`, `page_table`: as of kv_append. `tile`: query rows that share a read of K and V. Up to
   * `split_rows` rows are cut into at most `segments` segments, merged by
   * attention_combine from `partials`. `sinks`, `slopes`: one a head, 0 where there are none. `threads`: those that
   * units are shared out among. `behind`: 1 where `positions` has the ends of what rows see instead of the last of it.
   */
  attention: {
    file: "attention/attention",
    operands: {
      ...{ q: "u32", k: "u32", v: "u32", positions: "u32", slots: "u32", page_table: "u32" },
      ...{ slot_count: "u32", y: "u32", rows: "u32", heads: "u32", kv_heads: "u32" },
      ...{ head_size: "u32", value_size: "u32", capacity: "u32", cache: "u32", scale: "f32" },
      ...{ window: "u32", softcap: "f32", tile: "u32", split_rows: "u32", segments: "u32" },
      ...{ partials: "u32", scratch: "u32", scratch_bytes: "u32" },
      ...{ sinks: "u32", slopes: "u32", threads: "u32", behind: "u32" },
    },
  },
  attention_combine: {
    file: "attention/attention",
    operands: {
      ...{ partials: "u32", positions: "u32", y: "u32", rows: "u32", heads: "u32" },
      ...{ value_size: "u32", window: "u32", split_rows: "u32", segments: "u32", behind: "u32" },
    },
  },
  /** `kind`: a number of functions/unary.ts. */
  glu: {
    file: "rows/elementwise",
    operands: { gate: "u32", up: "u32", y: "u32", count: "u32", kind: "u32" },
  },
  /** y = g · sigmoid(alpha · g) · (u + 1), g at most `limit`, u within ±`limit`. */
  clamped_glu: {
    file: "rows/elementwise",
    operands: { ...{ gate: "u32", up: "u32", y: "u32", count: "u32", limit: "f32", alpha: "f32" } },
  },
  softmax: {
    file: "rows/softmax",
    operands: { x: "u32", y: "u32", outer: "u32", length: "u32", inner: "u32" },
  },
  /** Rows of `a` then of `b`, one behind the other; `bytes` of one row. */
  join_columns: {
    file: "rows/elementwise",
    operands: { a: "u32", b: "u32", y: "u32", rows: "u32", a_bytes: "u32", b_bytes: "u32" },
  },
  /**
   * The best `count` of `experts` by score (`kind` 0 softmax, 1 sigmoid) plus `correction` (0: none), out of
   * the best `group_count` of `groups`; `best_two`: a group counts its best two. See mixture.ts.
   */
  route: {
    file: "matmul/mixture",
    operands: {
      ...{ logits: "u32", correction: "u32", chosen: "u32", weights: "u32", rows: "u32" },
      ...{ experts: "u32", count: "u32", groups: "u32", group_count: "u32", kind: "u32" },
      ...{ best_two: "u32", normalize: "u32", scale: "f32", scratch: "u32", scratch_bytes: "u32" },
    },
  },
  /** y[m] = Σ weights[m, i] · x[m, i], `count` rows of `columns` each. */
  weighted_sum: {
    file: "matmul/mixture",
    operands: {
      ...{ x: "u32", weights: "u32", y: "u32", rows: "u32", count: "u32", columns: "u32" },
    },
  },
  /** `rows` rows of `outputs` columns, from rows of `inner` values; entries row by row. See sparse.ts. */
  sparse_add: {
    file: "rows/sparse",
    operands: {
      ...{ base: "u32", x: "u32", starts: "u32", columns: "u32", values: "u32", y: "u32" },
      ...{ rows: "u32", outputs: "u32", inner: "u32" },
    },
  },
  /** Row `indices[i]` of `rows` rows of `bytes` bytes. */
  select_rows: {
    file: "rows/softmax",
    operands: { x: "u32", indices: "u32", y: "u32", count: "u32", rows: "u32", bytes: "u32" },
  },
  /** The `wanted` best of a row of `count` logits, by thread: lists of `list_bytes` each. See best_logits.ts. */
  best_logits: {
    file: "rows/best_logits",
    operands: { row: "u32", count: "u32", wanted: "u32", lists: "u32", list_bytes: "u32" },
  },
  /** One list of those of all threads, best first. */
  best_logits_merge: {
    file: "rows/best_logits",
    operands: {
      ...{ lists: "u32", list_bytes: "u32", threads: "u32", wanted: "u32", ids: "u32" },
      ...{ logits: "u32" },
    },
  },
  /**
   * Rows see [starts, ends) of `limit` rows of k and v; `starts`, `ends`, `slots` and `bias` are 0 where there
   * is none. With `slots`, `k` and `v` lie in pages as those of kv_append. `bias`: 2·`reach` + 1
   * summands for each head, by distance.
   */
  span_attention: {
    file: "attention/spans",
    operands: {
      ...{
        q: "u32",
        k: "u32",
        v: "u32",
        starts: "u32",
        ends: "u32",
        positions: "u32",
        slots: "u32",
      },
      ...{
        page_table: "u32",
        slot_count: "u32",
        y: "u32",
        rows: "u32",
        limit: "u32",
        heads: "u32",
      },
      ...{ kv_heads: "u32", head_size: "u32", value_size: "u32", cache: "u32", scale: "f32" },
      ...{ bias: "u32", reach: "u32", tile: "u32", scratch: "u32", scratch_bytes: "u32" },
    },
  },
} as const satisfies Record<string, OpcodeRecord>;
