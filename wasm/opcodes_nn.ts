// Kernels of neural networks beyond language models: convolutions, pools, products of computed matrices,
// recurrent layers. See opcodes.ts. Sizes of planes may be symbolic, windows are not.

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

/** Table of these kernels. */
export const NN_OPCODES = {
  /** Batches of `outer` times `batch` products; strides of both in elements, 0 where a side repeats. */
  matmul_nd: {
    file: "nn_matmul",
    operands: {
      ...{ a: u32, b: u32, y: u32, rows: u32, inner: u32, columns: u32 },
      ...{ outer: u32, batch: u32, a_outer: u32, a_batch: u32, b_outer: u32, b_batch: u32 },
      ...{ transpose_a: u32, transpose_b: u32, alpha: "f32", scratch: u32, scratch_bytes: u32 },
    },
  },
  /** `b` is 0 where there is none. */
  conv: {
    file: "nn_conv",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32 },
      ...{ batch: u32, channels: u32, filters: u32, groups: u32 },
      ...planes,
      ...window,
      ...{ scratch: u32, scratch_bytes: u32 },
    },
  },
  /** One channel a filter, two spatial dims. */
  conv_depthwise: {
    file: "nn_conv",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32, batch: u32, channels: u32, filters: u32 },
      ...{ height: u32, width: u32, out_height: u32, out_width: u32 },
      ...{ kernel_h: u32, kernel_w: u32, stride_h: u32, stride_w: u32 },
      ...{ dilation_h: u32, dilation_w: u32, begin_h: u32, begin_w: u32 },
    },
  },
  /** `b` is 0 where there is none. */
  conv_transpose: {
    file: "nn_conv_transpose",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32 },
      ...{ batch: u32, channels: u32, filters: u32, groups: u32 },
      ...planes,
      ...window,
    },
  },
  /** `average` 0: the largest. */
  pool: {
    file: "nn_pool",
    operands: {
      ...{ x: u32, y: u32, planes: u32 },
      ...planes,
      ...window,
      ...{ end_d: u32, end_h: u32, end_w: u32, average: u32, count_pads: u32 },
    },
  },
  batch_norm: {
    file: "nn_norm",
    operands: {
      ...{ x: u32, w: u32, b: u32, mean: u32, variance: u32, y: u32 },
      ...{ batch: u32, channels: u32, places: u32, epsilon: "f32" },
    },
  },
  /** `w` and `b` are 0 where there is none. */
  group_norm: {
    file: "nn_norm",
    operands: {
      ...{ x: u32, w: u32, b: u32, y: u32, batch: u32, channels: u32, groups: u32, places: u32 },
      ...{ epsilon: "f32" },
    },
  },
  /** Scales of 0 stand for the ratio of the sizes. */
  resize: {
    file: "nn_resize",
    operands: {
      ...{ x: u32, y: u32, planes: u32, height: u32, width: u32, out_height: u32, out_width: u32 },
      ...{ scale_h: "f32", scale_w: "f32", linear: u32, coordinates: u32, rounding: u32 },
      ...{ scratch: u32, scratch_bytes: u32 },
    },
  },
} as const satisfies Readonly<Record<string, OpcodeRecord>>;
