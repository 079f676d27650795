// Kernels of the general ops that ONNX graphs are made of. See opcodes.ts. Loops run over up to six dims:
// `n0` is the outermost size, and `x0`, `y0`, … are byte strides along it; a dim that is not used has size 1.

import type { OpcodeRecord } from "./opcode_record.ts";

/** Numbers of the functions of `map`; 0 is left to names that no kernel knows. */
export const MAP_KINDS = {
  ...{ abs: 1, neg: 2, sign: 3, relu: 4, ceil: 5, floor: 6, round: 7, exp: 8, log: 9, sqrt: 10 },
  ...{ reciprocal: 11, sin: 12, cos: 13, tanh: 14, erf: 15, sigmoid: 16, silu: 17, softplus: 18 },
  ...{ hard_sigmoid: 19, hard_swish: 20, elu: 21, leaky_relu: 22, mish: 23, gelu: 24 },
  ...{ gelu_tanh: 25, softsign: 26, selu: 27, celu: 28, thresholded_relu: 29 },
} as const;

/** Numbers of the functions of `combine`; from `equal` on the result is a byte, 0 or 1. */
export const COMBINE_KINDS = {
  ...{ add: 1, sub: 2, mul: 3, div: 4, min: 5, max: 6, prelu: 7, pow: 8 },
  ...{ equal: 16, greater: 17, greater_equal: 18, less: 19, less_equal: 20 },
} as const;

/** Numbers of the reductions of `reduce`. */
export const REDUCE_KINDS = {
  ...{ sum: 1, mean: 2, max: 3, min: 4, prod: 5, l1: 6, l2: 7, sum_square: 8, log_sum: 9 },
} as const;

const SIZES = { n0: "u32", n1: "u32", n2: "u32", n3: "u32", n4: "u32", n5: "u32" } as const;
const X = { x0: "u32", x1: "u32", x2: "u32", x3: "u32", x4: "u32", x5: "u32" } as const;
const Y = { y0: "u32", y1: "u32", y2: "u32", y3: "u32", y4: "u32", y5: "u32" } as const;
const A = { a0: "u32", a1: "u32", a2: "u32", a3: "u32", a4: "u32", a5: "u32" } as const;
const B = { b0: "u32", b1: "u32", b2: "u32", b3: "u32", b4: "u32", b5: "u32" } as const;

/** Table of these kernels. */
export const ONNX_OPCODES = {
  /** Copies elements of 1, 2, 4 or 8 `bytes` from one box to another; strides may be negative. */
  move: {
    file: "onnx_move",
    operands: { x: "u32", y: "u32", bytes: "u32", ...SIZES, ...X, ...Y },
  },
  /** The same for 4-byte elements where `x4` and `y5` are 4: the two last dims change places. */
  move_turned: {
    file: "onnx_move",
    operands: { x: "u32", y: "u32", ...SIZES, ...X, ...Y },
  },
  /** Sets `count` elements of `bytes` to the one at `value`; 0: to zero. */
  fill: {
    file: "onnx_move",
    operands: { value: "u32", y: "u32", bytes: "u32", count: "u32" },
  },
  /** y[o, i] = x[o, indices[i]], entries of `bytes`; `wide` = 64-bit indices. An index outside traps. */
  gather: {
    file: "onnx_move",
    operands: {
      ...{ x: "u32", indices: "u32", y: "u32", outer: "u32", size: "u32", count: "u32" },
      ...{ bytes: "u32", wide: "u32" },
    },
  },
  /** y = f(x); `alpha` and `beta` are parameters of some functions. */
  map: {
    file: "onnx_elementwise",
    operands: { x: "u32", y: "u32", count: "u32", kind: "u32", alpha: "f32", beta: "f32" },
  },
  /** y = f(a, b) with any broadcasting; y is contiguous. */
  combine: {
    file: "onnx_elementwise",
    operands: { a: "u32", b: "u32", y: "u32", kind: "u32", ...SIZES, ...A, ...B },
  },
  /** y = c ? a : b, 4-byte elements, with any broadcasting over five dims; c is bytes. */
  choose: {
    file: "onnx_elementwise",
    operands: {
      ...{ c: "u32", a: "u32", b: "u32", y: "u32" },
      ...{ n0: "u32", n1: "u32", n2: "u32", n3: "u32", n4: "u32" },
      ...{ c0: "u32", c1: "u32", c2: "u32", c3: "u32", c4: "u32" },
      ...{ a0: "u32", a1: "u32", a2: "u32", a3: "u32", a4: "u32" },
      ...{ b0: "u32", b1: "u32", b2: "u32", b3: "u32", b4: "u32" },
    },
  },
  /** y[o, i] = reduction of x[o, :, i]. */
  reduce: {
    file: "onnx_reduce",
    operands: {
      ...{ x: "u32", y: "u32", kind: "u32", outer: "u32", length: "u32", inner: "u32" },
    },
  },
} as const satisfies Readonly<Record<string, OpcodeRecord>>;
