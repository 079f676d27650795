// The references of the ops that compute on elements of any type, against NumPy 2: each vector is written
// by the NumPy call that its name describes, wrapping integers and half precision included.

import { assertThrows } from "@std/assert";
import { hostTensor, runOp, testOps, type Vector } from "../../../tests/support/run_op.ts";

testOps([
  {
    op: "binary",
    what: "sums of 64-bit integers wrap and stay exact",
    inputs: [["i64", [3], [9223372036854775807n, 9007199254740993n, -5n]], ["i64", [3], [
      1n,
      2n,
      3n,
    ]]],
    attributes: { kind: "add" },
    expected: [["i64", [3], [-9223372036854775808n, 9007199254740995n, -2n]]],
  },
  {
    op: "binary",
    what: "products of 32-bit integers wrap",
    inputs: [["i32", [2], [65537, -3]], ["i32", [2], [65537, 7]]],
    attributes: { kind: "mul" },
    expected: [["i32", [2], [131073, -21]]],
  },
  {
    op: "binary",
    what: "whole quotients are cut towards 0",
    inputs: [["i32", [4], [-7, 7, -7, 7]], ["i32", [4], [3, -3, -3, 3]]],
    attributes: { kind: "div" },
    expected: [["i32", [4], [-2, -2, 2, 2]]],
  },
  {
    op: "binary",
    what: "mod has the sign of the divisor",
    inputs: [["i32", [4], [-7, 7, -7, 7]], ["i32", [4], [3, -3, -3, 3]]],
    attributes: { kind: "mod" },
    expected: [["i32", [4], [2, -2, -1, 1]]],
  },
  {
    op: "binary",
    what: "fmod has the sign of the dividend",
    inputs: [["i32", [4], [-7, 7, -7, 7]], ["i32", [4], [3, -3, -3, 3]]],
    attributes: { kind: "fmod" },
    expected: [["i32", [4], [-1, 1, -1, 1]]],
  },
  {
    op: "binary",
    what: "maxima keep NaN and broadcast",
    inputs: [["f32", [3], [1, NaN, -2]], ["f32", [2, 1], [0, 3]]],
    attributes: { kind: "max" },
    expected: [["f32", [2, 3], [1, NaN, 0, 3, NaN, 3]]],
  },
  {
    op: "binary",
    what: "comparisons give truth values",
    inputs: [["f32", [3], [1, NaN, -2]], ["f32", [2, 1], [0, 3]]],
    attributes: { kind: "greater_equal" },
    expected: [["bool", [2, 3], [1, 0, 0, 0, 0, 0]]],
  },
  {
    op: "binary",
    what: "bytes shift and lose what is above",
    inputs: [["u8", [2], [200, 3]], ["u8", [2], [1, 9]]],
    attributes: { kind: "shift_left" },
    expected: [["u8", [2], [144, 0]]],
  },
  {
    op: "unary",
    what: "halves round to the even neighbour",
    inputs: [["f32", [6], [0.5, 1.5, 2.5, -0.5, -1.5, 2.4000001]]],
    attributes: { kind: "round" },
    expected: [["f32", [6], [0, 2, 2, -0, -2, 2]]],
  },
  {
    op: "unary",
    what: "half precision rounds once",
    inputs: [["f16", [3], [0.0999756, 1, 3]]],
    attributes: { kind: "exp" },
    expected: [["f16", [3], [1.1054688, 2.71875, 20.078125]]],
  },
  {
    op: "unary",
    what: "celu divides by alpha inside",
    inputs: [["f32", [4], [-2, -0.5, 0, 3]]],
    attributes: { kind: "celu", alpha: 2 },
    expected: [["f32", [4], [-1.2642412, -0.4423985, 0, 3]]],
  },
  {
    op: "unary",
    what: "the sign of a 64-bit integer",
    inputs: [["i64", [3], [-4611686018427387904n, 0n, 4611686018427387904n]]],
    attributes: { kind: "sign" },
    expected: [["i64", [3], [-1n, 0n, 1n]]],
  },
  {
    op: "binary",
    what: "an integer base keeps its type",
    inputs: [["i32", [3], [1, 2, 3]], ["f32", [3], [4, 5, 0.5]]],
    attributes: { kind: "pow" },
    expected: [["i32", [3], [1, 32, 1]]],
  },
  {
    op: "binary",
    what: "whole powers beyond 2^53 are exact",
    inputs: [["i64", [2], [3n, -2n]], ["i64", [2], [39n, 63n]]],
    attributes: { kind: "pow" },
    expected: [["i64", [2], [4052555153018976267n, -9223372036854775808n]]],
  },
  {
    op: "cast",
    what: "floats are cut, integers wrap",
    inputs: [["f32", [3], [-1.9, 2.9000001, 300]]],
    attributes: { to: "i8" },
    expected: [["i8", [3], [-1, 2, 44]]],
  },
  {
    op: "cast",
    what: "64 bits to 32 keep the low ones",
    inputs: [["i64", [3], [4294967301n, -1n, 9007199254740993n]]],
    attributes: { to: "i32" },
    expected: [["i32", [3], [5, -1, 1]]],
  },
  {
    op: "cast",
    what: "anything but 0 is true, NaN too",
    inputs: [["f32", [4], [0, -0, 0.1, NaN]]],
    attributes: { to: "bool" },
    expected: [["bool", [4], [0, 0, 1, 1]]],
  },
  {
    op: "reduce",
    what: "a mean along columns",
    inputs: [["f32", [2, 3], [1, 2, 3, 4, 5, 6.5]]],
    attributes: { kind: "mean", axes: [1], keep: false },
    expected: [["f32", [2], [2, 5.1666665]]],
  },
  {
    op: "reduce",
    what: "log_sum_exp of large numbers",
    inputs: [["f32", [2, 2], [1000, 1001, -1000, -1000]]],
    attributes: { kind: "log_sum_exp", axes: [-1], keep: false },
    expected: [["f32", [2], [1001.3132324, -999.3068237]]],
  },
  {
    op: "reduce",
    what: "a sum of 64-bit integers is exact",
    inputs: [["i64", [3], [9007199254740992n, 1n, 1n]]],
    attributes: { kind: "sum", axes: [0], keep: false },
    expected: [["i64", [], [9007199254740994n]]],
  },
  {
    op: "reduce",
    what: "a mean of whole numbers is whole",
    inputs: [["i32", [2], [-3, -4]]],
    attributes: { kind: "mean", axes: [0], keep: true },
    expected: [["i32", [1], [-3]]],
  },
  {
    op: "reduce",
    what: "the maximum of nothing is the least number",
    inputs: [["f32", [2, 0], []]],
    attributes: { kind: "max", axes: [1], keep: false },
    expected: [["f32", [2], [-Infinity, -Infinity]]],
  },
  {
    op: "arg_reduce",
    what: "the first of equals",
    inputs: [["f32", [2, 3], [3, 1, 3, 2, 2, 0]]],
    attributes: { kind: "max", axis: 1, keep: false },
    expected: [["i64", [2], [0n, 0n]]],
  },
  {
    op: "arg_reduce",
    what: "the last of equals",
    inputs: [["f32", [2, 3], [3, 1, 3, 2, 2, 0]]],
    attributes: { kind: "max", axis: 1, keep: true, last: true },
    expected: [["i64", [2, 1], [2n, 1n]]],
  },
  {
    op: "cumulative",
    what: "running sums",
    inputs: [["f32", [4], [1, 2, 3, 4]]],
    attributes: { kind: "sum", axis: 0 },
    expected: [["f32", [4], [1, 3, 6, 10]]],
  },
  {
    op: "cumulative",
    what: "exclusive and from the end",
    inputs: [["f32", [4], [1, 2, 3, 4]]],
    attributes: { kind: "sum", axis: 0, exclusive: true, reverse: true },
    expected: [["f32", [4], [9, 7, 4, 0]]],
  },
  {
    op: "cumulative",
    what: "products of 64-bit integers",
    inputs: [["i64", [3], [2147483648n, 2147483648n, 3n]]],
    attributes: { kind: "prod", axis: 0 },
    expected: [["i64", [3], [2147483648n, 4611686018427387904n, -4611686018427387904n]]],
  },
  {
    op: "det",
    what: "with a pivot",
    inputs: [["f64", [2, 2, 2], [2, 1, 7, 4, 0, 2, 3, 5]]],
    attributes: {},
    expected: [["f64", [2], [1, -6]]],
  },
  {
    op: "random",
    what: "uniform numbers of RandomState(7)",
    inputs: [],
    attributes: { kind: "uniform", shape: [3], dtype: "f64", seed: 7 },
    expected: [["f64", [3], [0.0763083, 0.7799188, 0.4384092]]],
  },
  {
    op: "random",
    what: "normal numbers of RandomState(7)",
    inputs: [],
    attributes: { kind: "normal", shape: [3], dtype: "f64", offset: 1, scale: 2, seed: 7 },
    expected: [["f64", [3], [4.3810514, 0.0681253, 1.0656403]]],
  },
  {
    op: "bit_cast",
    what: "floats as their bits",
    inputs: [["f32", [2], [1, -2]]],
    attributes: { to: "u32" },
    expected: [["u32", [2], [1065353216, 3221225472]]],
  },
]);

const FLOATS: Vector = ["f32", [3], [1, 2, 3]];

Deno.test("whole numbers are not divided by 0", () => {
  const inputs = [["i32", [1], [1]] as const, ["i32", [1], [0]] as const].map(hostTensor);
  for (const kind of ["div", "mod", "fmod"]) {
    assertThrows(() => runOp("binary", inputs, { kind }), RangeError, "divide whole numbers by 0");
  }
});

Deno.test("a function that a type lacks is refused by its shape rule", () => {
  assertThrows(() => runOp("unary", [hostTensor(["i32", [1], [1]])], { kind: "exp" }), TypeError);
  assertThrows(
    () => runOp("binary", [FLOATS, FLOATS].map(hostTensor), { kind: "bit_and" }),
    TypeError,
  );
  assertThrows(
    () => runOp("binary", [FLOATS, ["f64", [1], [1]] as const].map(hostTensor), { kind: "sub" }),
    TypeError,
    "one element type",
  );
});
