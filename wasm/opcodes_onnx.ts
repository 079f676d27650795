// Kernels of the general ops that ONNX graphs are made of. See opcodes.ts. Loops run over up to six dims:
// `n0` is the outermost size, and `x0`, `y0`, … are byte strides along it; a dim that is not used has size 1.

import type { OpcodeRecord } from "./opcode_record.ts";

/** Numbers of the reductions of `reduce`; `reduce_integers` knows sum, max, min, prod and sum_square. */
export const REDUCE_KINDS = {
  ...{ sum: 1, mean: 2, max: 3, min: 4, prod: 5, l1: 6, l2: 7, sum_square: 8, log_sum: 9 },
  ...{ log_sum_exp: 10 },
} as const;

/** Numbers of element types in instructions: whole numbers below 16, `bool` among them, floats from 16 on. */
export const ELEMENT_KINDS = {
  ...{ i8: 0, u8: 1, i16: 2, u16: 3, i32: 4, u32: 5, i64: 6, bool: 7, u64: 8 },
  ...{ i4: 9, u4: 10, i2: 11, u2: 12 },
  ...{ f32: 16, f64: 17, f16: 18, bf16: 19 },
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
    file: "tensor/move",
    operands: { x: "u32", y: "u32", bytes: "u32", ...SIZES, ...X, ...Y },
  },
  /** The same for 4-byte elements where `x4` and `y5` are 4: the two last dims change places. */
  move_turned: { file: "tensor/move", operands: { x: "u32", y: "u32", ...SIZES, ...X, ...Y } },
  /** A margin of `before` elements that repeats x, and what `out` leaves for the one behind. */
  pad: {
    file: "tensor/pad",
    operands: {
      ...{ x: "u32", y: "u32", bytes: "u32", mode: "u32" },
      ...{ n0: "u32", n1: "u32", n2: "u32", n3: "u32", n4: "u32" },
      ...{ before0: "u32", before1: "u32", before2: "u32", before3: "u32", before4: "u32" },
      ...{ out0: "u32", out1: "u32", out2: "u32", out3: "u32", out4: "u32" },
    },
  },
  /** Sets `count` elements of `bytes` to the one at `value`; 0: to zero. */
  fill: { file: "tensor/move", operands: { value: "u32", y: "u32", bytes: "u32", count: "u32" } },
  /** y[o, i] = x[o, indices[i]], entries of `bytes`; `wide` = 64-bit indices. */
  gather: {
    file: "tensor/move",
    operands: {
      ...{ x: "u32", indices: "u32", y: "u32", outer: "u32", size: "u32", count: "u32" },
      ...{ bytes: "u32", wide: "u32" },
    },
  },
  /** y = f(x); `alpha` and `beta` are parameters of some functions. */
  map: {
    file: "tensor/elementwise",
    operands: { x: "u32", y: "u32", count: "u32", kind: "u32", alpha: "f32", beta: "f32" },
  },
  /** y = f(a, b) of equal shapes, a `chunk` at a time. */
  combine_flat: {
    file: "tensor/elementwise",
    operands: { a: "u32", b: "u32", y: "u32", count: "u32", chunk: "u32", kind: "u32" },
  },
  /** y = f(a, b) with any broadcasting; y is contiguous. */
  combine: {
    file: "tensor/elementwise",
    operands: { a: "u32", b: "u32", y: "u32", kind: "u32", ...SIZES, ...A, ...B },
  },
  /**
   * A chain of `steps` functions on up to four `inputs` a, b, c, d with any broadcasting over three dims;
   * `code` and its `constants` are described in the kernel's file. y is contiguous.
   */
  elementwise: {
    file: "tensor/chain",
    operands: {
      ...{ code: "u32", steps: "u32", constants: "u32", inputs: "u32", y: "u32" },
      ...{ scratch: "u32", scratch_bytes: "u32", n0: "u32", n1: "u32", n2: "u32" },
      ...{ a: "u32", a0: "u32", a1: "u32", a2: "u32", b: "u32", b0: "u32", b1: "u32", b2: "u32" },
      ...{ c: "u32", c0: "u32", c1: "u32", c2: "u32", d: "u32", d0: "u32", d1: "u32", d2: "u32" },
    },
  },
  /** y = c ? a : b, elements of `bytes`, with any broadcasting over five dims; c is bytes. */
  choose: {
    file: "tensor/elementwise",
    operands: {
      ...{ c: "u32", a: "u32", b: "u32", y: "u32", bytes: "u32" },
      ...{ n0: "u32", n1: "u32", n2: "u32", n3: "u32", n4: "u32" },
      ...{ c0: "u32", c1: "u32", c2: "u32", c3: "u32", c4: "u32" },
      ...{ a0: "u32", a1: "u32", a2: "u32", a3: "u32", a4: "u32" },
      ...{ b0: "u32", b1: "u32", b2: "u32", b3: "u32", b4: "u32" },
    },
  },
  /** y = x in another element type; to whole numbers cut towards 0. */
  convert: {
    file: "tensor/typed",
    operands: { x: "u32", y: "u32", count: "u32", from: "u32", to: "u32" },
  },
  /** y = table[x], where x is bytes and y 4-byte elements. */
  look_up: { file: "tensor/codes", operands: { x: "u32", y: "u32", count: "u32", table: "u32" } },
  /** y = the byte of the last of `steps` keys that is not above the key of float32 x; `table` has keys, then bytes. */
  find_code: {
    file: "tensor/codes",
    operands: { x: "u32", y: "u32", count: "u32", table: "u32", steps: "u32" },
  },
  /** The negative entry of x[o, classes, places] that each of `count` targets names, weighted, summed, averaged. */
  nll_loss: {
    file: "tensor/codes",
    operands: {
      ...{ x: "u32", target: "u32", weight: "u32", y: "u32", count: "u32", classes: "u32" },
      ...{ places: "u32", type: "u32", reduction: "u32" },
      ...{ ignores: "u32", ignored_low: "u32", ignored_high: "u32" },
    },
  },
  /** y = f(a, b) of whole numbers, or float64, of `type`, with any broadcasting; y is contiguous. */
  combine_integers: {
    file: "tensor/typed",
    operands: { a: "u32", b: "u32", y: "u32", kind: "u32", type: "u32", ...SIZES, ...A, ...B },
  },
  /** y = f(x) of whole numbers, or float64, of `type`. */
  map_integers: {
    file: "tensor/typed",
    operands: { x: "u32", y: "u32", count: "u32", kind: "u32", type: "u32" },
  },
  /** y[o, i] = reduction of the whole numbers, or float64, x[o, :, i]. */
  reduce_integers: {
    file: "tensor/typed",
    operands: {
      ...{ x: "u32", y: "u32", kind: "u32", type: "u32" },
      ...{ outer: "u32", length: "u32", inner: "u32" },
    },
  },
  /** y[i] = start + i · delta, both of them one element in memory. */
  count_up: {
    file: "tensor/typed",
    operands: { start: "u32", delta: "u32", y: "u32", count: "u32", type: "u32" },
  },
  /** One element becomes the 64-bit number `high`, `low`. */
  set_number: {
    file: "tensor/typed",
    operands: { y: "u32", type: "u32", low: "u32", high: "u32" },
  },
  /** Running totals along lines: sums, or products if `products`. */
  accumulate: {
    file: "tensor/typed",
    operands: {
      ...{ x: "u32", y: "u32", outer: "u32", length: "u32", inner: "u32", type: "u32" },
      ...{ products: "u32", exclusive: "u32", reverse: "u32" },
    },
  },
  /** Index of the largest (or smallest) element of each line; `wide` = 64-bit indices. */
  arg_reduce: {
    file: "tensor/select",
    operands: {
      ...{ x: "u32", y: "u32", outer: "u32", length: "u32", inner: "u32", type: "u32" },
      ...{ largest: "u32", last: "u32", wide: "u32" },
    },
  },
  /** The `k` best float32 of each line, best first, and their indices. */
  top_k: {
    file: "tensor/select",
    operands: {
      ...{ x: "u32", values: "u32", indices: "u32", outer: "u32", length: "u32", inner: "u32" },
      ...{ k: "u32", largest: "u32", wide: "u32" },
    },
  },
  /**
   * Runs of `run` bytes by tuples of `depth` indices, dims `d0`, … of byte strides `s0`, …: from `x` to
   * `y`. `per_batch` tuples are of one batch of `batch_bytes`.
   */
  gather_nd: {
    file: "tensor/select",
    operands: {
      ...{
        x: "u32",
        indices: "u32",
        y: "u32",
        tuples: "u32",
        depth: "u32",
        run: "u32",
        wide: "u32",
      },
      ...{ per_batch: "u32", batch_bytes: "u32" },
      ...{ d0: "u32", d1: "u32", d2: "u32", d3: "u32", d4: "u32" },
      ...{ s0: "u32", s1: "u32", s2: "u32", s3: "u32", s4: "u32" },
    },
  },
  /** The other way: runs of `updates` into `y`, in the order of the tuples. */
  scatter_nd: {
    file: "tensor/select",
    operands: {
      ...{ updates: "u32", indices: "u32", y: "u32", tuples: "u32", depth: "u32", run: "u32" },
      ...{ wide: "u32" },
      ...{ d0: "u32", d1: "u32", d2: "u32", d3: "u32", d4: "u32" },
      ...{ s0: "u32", s1: "u32", s2: "u32", s3: "u32", s4: "u32" },
    },
  },
  /**
   * y[i] = x[place i], where place i has index i along one dim of `size` and byte stride `along`, and the
   * strides x0, … along the others. Indices and y are contiguous.
   */
  gather_elements: {
    file: "tensor/index",
    operands: {
      ...{
        x: "u32",
        indices: "u32",
        y: "u32",
        bytes: "u32",
        wide: "u32",
        size: "u32",
        along: "u32",
      },
      ...SIZES,
      ...X,
    },
  },
  /** The other way: y[place i] = updates[i], in order. */
  scatter_elements: {
    file: "tensor/index",
    operands: {
      ...{ updates: "u32", indices: "u32", y: "u32", bytes: "u32", wide: "u32", size: "u32" },
      ...{ along: "u32" },
      ...SIZES,
      ...Y,
    },
  },
  /** y[o, indices[o, i], i] = the element at `value`; an index outside marks nothing. */
  mark: {
    file: "tensor/index",
    operands: {
      ...{ indices: "u32", type: "u32", value: "u32", y: "u32", bytes: "u32" },
      ...{ outer: "u32", depth: "u32", inner: "u32" },
    },
  },
  /** The triangle of matrices above (or below) diagonal `k`; zeros elsewhere. */
  trilu: {
    file: "tensor/index",
    operands: {
      ...{ x: "u32", y: "u32", bytes: "u32", matrices: "u32", rows: "u32", columns: "u32" },
      ...{ k: "i32", upper: "u32" },
    },
  },
  /** y[o, i] = reduction of x[o, :, i]. */
  reduce: {
    file: "tensor/reduce",
    operands: { ...{ x: "u32", y: "u32", kind: "u32", outer: "u32", length: "u32", inner: "u32" } },
  },
} as const satisfies Readonly<Record<string, OpcodeRecord>>;
