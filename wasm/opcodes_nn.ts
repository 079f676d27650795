// Kernels of neural networks beyond language models: convolutions, pools, products of computed
// matrices, recurrent layers. See opcodes.ts. Sizes of planes may be symbolic, windows are not.

import type { OpcodeRecord } from "./opcode_record.ts";

const u32 = "u32" as const;

const window = {
  ...{ kernel_d: u32, kernel_h: u32, kernel_w: u32, stride_d: u32, stride_h: u32, stride_w: u32 },
  ...{ dilation_d: u32, dilation_h: u32, dilation_w: u32 },
  ...{ begin_d: u32, begin_h: u32, begin_w: u32 },
};

const planes = {
  ...{ depth: u32, height: u32, width: u32 },
  ...{ out_depth: u32, out_height: u32, out_width: u32 },
};

/** Bits of `flags` of scaled_attention. */
export const ATTENTION_FLAGS = {
  ...{ q_joined: 1, k_joined: 2, v_joined: 4, causal: 8, from_end: 16, wide: 32 },
  ...{ new_k_joined: 64, new_v_joined: 128, behind_valid: 256 },
  ...{ truths: 512, one_column: 1024, packed: 2048, spoilt: 4096 },
} as const;

/** Table of these kernels. */
export const NN_OPCODES = {
  /** Batches of `outer` times `batch` products; strides of both in elements, 0 where a side repeats. */
  matmul_nd: {
    file: "matmul/nd",
    operands: {
      ...{ a: u32, b: u32, y: u32, rows: u32, inner: u32, columns: u32 },
      ...{ outer: u32, batch: u32, a_outer: u32, a_batch: u32, b_outer: u32, b_batch: u32 },
      ...{ transpose_a: u32, transpose_b: u32, alpha: "f32", scratch: u32, scratch_bytes: u32 },
    },
  },
  /**
   * `b` is 0 where there is none; `activation`: a number of EPILOGUE_NAMES; `setup`: words of
   * engine/run/wasm/lower/conv_setup.ts.
   */
  conv: {
    file: "network/conv",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32 },
      ...{ batch: u32, channels: u32, filters: u32, groups: u32 },
      ...planes,
      ...window,
      ...{ setup: u32, activation: u32 },
    },
  },
  /** Weights of filters, [groups, filters, taps], in blocks as `conv` takes them; `scratch`: for five filters a thread. */
  conv_weights: {
    file: "network/conv_blocks",
    operands: { w: u32, y: u32, groups: u32, filters: u32, taps: u32, scratch: u32 },
  },
  /** The operands of `conv`, of which at most eight places are computed. */
  conv_few: {
    file: "network/conv_few",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32 },
      ...{ batch: u32, channels: u32, filters: u32, groups: u32 },
      ...planes,
      ...window,
      ...{ scratch: u32, activation: u32 },
    },
  },
  /** [filters, channels, 3, 3] as 36 points each, in blocks of filters. */
  conv_winograd_weights: {
    file: "network/conv_winograd",
    operands: { w: u32, y: u32, filters: u32, channels: u32 },
  },
  /** `w` are points; `tiles`: most of a chunk, whole panels. */
  conv_winograd: {
    file: "network/conv_winograd",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32, batch: u32, channels: u32, filters: u32 },
      ...{ height: u32, width: u32, out_height: u32, out_width: u32, begin_h: u32, begin_w: u32 },
      ...{ tiles: u32, scratch: u32, scratch_bytes: u32, activation: u32 },
    },
  },
  /** Weights as 16-bit differences from `zeros` zero points: none, one, or one a filter. */
  conv_integer_weights: {
    file: "network/conv_integer",
    operands: {
      ...{ w: u32, zero: u32, zeros: u32, signed: u32, filters: u32, taps: u32, y: u32 },
    },
  },
  /** Operands in the places of those of `conv`; `w` are differences. */
  conv_integer: {
    file: "network/conv_integer",
    operands: {
      ...{ x: u32, w: u32, x_zero: u32, y: u32 },
      ...{ batch: u32, channels: u32, filters: u32, groups: u32 },
      ...planes,
      ...window,
      ...{ scratch: u32, x_signed: u32 },
    },
  },
  /** One channel a filter, two spatial dims. */
  conv_depthwise: {
    file: "network/conv_depthwise",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32, batch: u32, channels: u32, filters: u32 },
      ...{ height: u32, width: u32, out_height: u32, out_width: u32 },
      ...{ kernel_h: u32, kernel_w: u32, stride_h: u32, stride_w: u32 },
      ...{ dilation_h: u32, dilation_w: u32, begin_h: u32, begin_w: u32 },
      ...{ setup: u32, activation: u32 },
    },
  },
  /** `b` is 0 where there is none. */
  conv_transpose: {
    file: "network/conv_transpose",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32 },
      ...{ batch: u32, channels: u32, filters: u32, groups: u32 },
      ...planes,
      ...window,
      ...{ activation: u32 },
    },
  },
  /** Of each filter, [channels, taps] becomes blocks of taps. */
  conv_patches_weights: {
    file: "network/conv_patches",
    operands: { w: u32, y: u32, channels: u32, filters: u32, groups: u32, taps: u32 },
  },
  /** `places`: of a piece, whole panels. */
  conv_patches: {
    file: "network/conv_patches",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32, batch: u32, channels: u32, filters: u32, groups: u32 },
      ...{ height: u32, width: u32, kernel_h: u32, kernel_w: u32, places: u32 },
      ...{ scratch: u32, scratch_bytes: u32, activation: u32 },
    },
  },
  /** `average` 0: the largest. */
  pool: {
    file: "network/pool",
    operands: {
      ...{ x: u32, y: u32, planes: u32 },
      ...planes,
      ...window,
      ...{ end_d: u32, end_h: u32, end_w: u32, average: u32, count_pads: u32 },
    },
  },
  batch_norm: {
    file: "network/plane_norms",
    operands: {
      ...{ x: u32, w: u32, b: u32, mean: u32, variance: u32, y: u32 },
      ...{ batch: u32, channels: u32, places: u32, epsilon: "f32" },
    },
  },
  /** `w` and `b` are 0 where there is none. */
  group_norm: {
    file: "network/plane_norms",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32, batch: u32, channels: u32, groups: u32, places: u32 },
      ...{ epsilon: "f32", activation: u32 },
    },
  },
  /** Scales of 0 stand for the ratio of the sizes. */
  resize: {
    file: "network/resize",
    operands: {
      ...{ x: u32, y: u32, planes: u32, height: u32, width: u32, out_height: u32, out_width: u32 },
      ...{ scale_h: "f32", scale_w: "f32", linear: u32, coordinates: u32, rounding: u32 },
      ...{ scratch: u32, scratch_bytes: u32 },
    },
  },
  /** `a_zero` and `b_zero` are 0 where there are none; `b_zeros` counts those of b: 0, 1 or one a column. */
  matmul_integer: {
    file: "network/integer",
    operands: {
      ...{ a: u32, b: u32, a_zero: u32, b_zero: u32, b_zeros: u32, y: u32 },
      ...{ a_signed: u32, b_signed: u32, rows: u32, inner: u32, columns: u32, batch: u32 },
      ...{ b_batch: u32, scratch: u32, scratch_bytes: u32 },
    },
  },
  /** Least and largest of 64 parts, two floats each, 0 among them. */
  range_partials: { file: "network/integer", operands: { x: u32, count: u32, partials: u32 } },
  quantize_range: {
    file: "network/integer",
    operands: { x: u32, y: u32, count: u32, partials: u32, scale: u32, zero: u32 },
  },
  /** With more than one of `channels`, runs of `places` elements take scales in turn. */
  quantize: {
    file: "network/integer",
    operands: {
      ...{ x: u32, y: u32, scale: u32, zero: u32, count: u32, places: u32, channels: u32 },
      ...{ signed: u32 },
    },
  },
  /** `type`: 0 u8, 1 i8, 2 i32. */
  dequantize: {
    file: "network/integer",
    operands: {
      ...{ x: u32, y: u32, scale: u32, zero: u32, count: u32, places: u32, channels: u32 },
      ...{ type: u32 },
    },
  },
  /** `b`, `h` and `c` are 0 where there are none; `linear`: linear_before_reset of gru. */
  recurrent: {
    file: "network/recurrent",
    operands: {
      ...{ x: u32, w: u32, r: u32, b: u32, h: u32, c: u32, y: u32, last_h: u32, last_c: u32 },
      ...{ kind: u32, sequence: u32, batch: u32, width: u32, hidden: u32, directions: u32 },
      ...{ reverse: u32, batch_first: u32, linear: u32, scratch: u32, scratch_bytes: u32 },
    },
  },
  /**
   * Strides of the mask are in elements; addresses of 0: none; `flags`: ATTENTION_FLAGS, `truths` and
   * `one_column` of the mask, `packed`: q, k and v are columns of one tensor, `spoilt`: rows that see nothing are NaN. `fresh` rows of `new_k` and `new_v` stand behind the keys.
   */
  scaled_attention: {
    file: "attention/scaled",
    operands: {
      ...{ q: u32, k: u32, v: u32, y: u32, mask: u32, counts: u32, sinks: u32, flags: u32 },
      ...{ batch: u32, heads: u32, kv_heads: u32, rows: u32, keys: u32, width: u32 },
      ...{ value_width: u32, scale: "f32", softcap: "f32", offset: u32, window: u32 },
      ...{ mask_batch: u32, mask_head: u32, mask_row: u32 },
      ...{ mask_columns: u32, new_k: u32, new_v: u32, fresh: u32 },
      ...{ scratch: u32, scratch_bytes: u32 },
    },
  },
  /** `single`: one position, that of row 0; `table`: entries of the tables. */
  rotary: {
    file: "attention/heads",
    operands: {
      ...{ x: u32, y: u32, cos: u32, sin: u32, positions: u32, wide: u32, single: u32 },
      ...{ batch: u32, rows: u32, heads: u32, width: u32, half: u32, table: u32 },
      ...{ joined: u32, interleaved: u32 },
    },
  },
  append_rows: {
    file: "attention/heads",
    operands: {
      ...{ x: u32, past: u32, counts: u32, wide: u32, y: u32, batch: u32, heads: u32 },
      ...{ rows: u32, width: u32, held: u32, capacity: u32, joined: u32 },
    },
  },
} as const satisfies Readonly<Record<string, OpcodeRecord>>;
