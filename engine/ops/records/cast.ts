// cast: the same numbers in another element type. Floats round to nearest even; to whole numbers they
// are cut towards 0, and what does not fit is what onnxruntime and numpy make of it (`castToWhole`). Whole
// numbers wrap. Small floats take what is too large for them as their largest
// value (`saturate`) or as infinity or NaN.

import { encodeSmallFloat, isSmallFloat } from "../../../quant/small_floats.ts";
import { choice, flag } from "../attributes.ts";
import { DATA_TYPES, isFloat, isInteger, isWide, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import type { DataType } from "../../graph/graph.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { elementsOf } from "../strided.ts";

/** (x T[…]) → to[…]. */
export const cast: OpRecord = defineOp({
  name: "cast",
  summary: "the same numbers in another element type",
  attributes: {
    to: choice(DATA_TYPES),
    saturate: flag(true),
    // How f8e8m0, which has no fraction, rounds.
    round: choice(["nearest", "up", "down"], "up"),
    // False: not a rounding that a file asks for, but one of an op whose sums are wider than its type.
    rounds: flag(true),
  },
  infer(inputs, { to }) {
    checkInputCount(inputs, 1);
    return [{ dtype: to, shape: requireTyped(inputs, { index: 0, name: "x" }).shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { saturate, round } }) {
    const { dtype } = out!;
    const count = x!.data.length;
    if (dtype === "bool") {
      for (let i = 0; i < count; i++) {
        setElement(out!, { index: i, value: Number(getElement(x!, i) !== 0) });
      }
    } else if ((isFloat(x!.dtype) || isSmallFloat(x!.dtype)) && isWhole(dtype)) {
      for (let i = 0; i < count; i++) castToWhole(out!, i, getElement(x!, i));
    } else if (isWide(x!.dtype) || isWide(dtype)) castWide(x!, out!);
    else if (isSmallFloat(dtype)) {
      const codes = elementsOf(out!);
      for (let i = 0; i < count; i++) {
        codes[i] = encodeSmallFloat(dtype, getElement(x!, i), { saturate, round });
      }
    } else for (let i = 0; i < count; i++) setElement(out!, { index: i, value: getElement(x!, i) });
  },
  cases: (random) => [
    ...(["f32", "f16", "i32", "bool", "i8", "u8"] as const).flatMap((to) => [
      { name: `f32 to ${to}`, inputs: [random.input([5, 7])], attributes: { to } },
      { name: `i32 to ${to}`, inputs: [random.indices([0, 1, 2, 127])], attributes: { to } },
      { name: `bool to ${to}`, inputs: [random.truths([3, 5])], attributes: { to } },
    ]),
    ...CODES.flatMap((to) =>
      [true, false].map((saturate, i) => ({
        inputs: [random.typed("f32", EDGES)],
        attributes: { to, saturate, round: (["nearest", "down"] as const)[i]! },
      }))
    ),
    ...[...CODES, ...NARROW].map((from) => ({
      inputs: [random.typed(from, EDGES)],
      attributes: { to: "f32" as const },
    })),
    ...NARROW.map((to) => ({
      inputs: [random.typed("f32", [...EDGES, 2 ** 40, -(2 ** 32) - 256])],
      attributes: { to },
    })),
    {
      name: "f32 to i32, not a rounding of the file",
      inputs: [random.input([5])],
      attributes: { to: "i32", rounds: false },
    },
    ...(["u64", "i64", "f64"] as const).map((to) => ({
      inputs: [random.typed("u64", [0n, 1n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 53n + 1n])],
      attributes: { to },
    })),
  ],
});

const CODES = [...["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1"] as const];
const NARROW = [
  ...["i4", "u4", "i2", "u2", "i8", "u8", "i16", "u16", "i32", "u32", "f16", "bf16"] as const,
];

/** Signs, ties to even, subnormals, and what is too large for one format or all. */
const EDGES = [
  ...[0, -0, 1, -1, 1.5, -2.5, 0.0625, 3.25, 17, 18, 19, -20, 240, 248, 448, 464, 465, -480],
  ...[57344, 61440, -61441, 65504, 65520, 2 ** -9, 2 ** -10, 2 ** -11, 3 * 2 ** -11, 2 ** -17],
  ...[2 ** -18, 3 * 2 ** -18, -(2 ** -25), 1e-40, 1e30, Infinity, -Infinity, NaN],
];

function isWhole(dtype: DataType): boolean {
  return isInteger(dtype) || /^[iu][24]$/.test(dtype);
}

/**
 * Stores a float cut towards 0. ONNX leaves open what becomes of a number that does not fit. Compilers for x86
 * convert to a signed integer of 32 bits, or of 64 for wider types, which is the least one for all that is outside,
 * NaN too, and keep its low bits; for u32 and u64 the upper half of their range is moved down before and up again
 * after. numpy and onnxruntime do as they do.
 */
function castToWhole(out: HostTensor, index: number, value: number): void {
  const { dtype } = out;
  const half = isWide(dtype) ? 2 ** 63 : 2 ** 31;
  const moved = (dtype === "u64" || dtype === "u32") && value >= half ? half : 0;
  const cut = Math.trunc(value - moved);
  const whole = cut >= -half && cut < half ? cut : -half;
  if (isWide(dtype)) (out.data as BigInt64Array)[index] = BigInt(whole) + BigInt(moved);
  else setElement(out, { index, value: whole + moved });
}

// 64-bit integers that no double holds stay whole, and lose high bits only.
function castWide(x: HostTensor, out: HostTensor): void {
  const from = x.data, to = out.data;
  const toFloat = isFloat(out.dtype) || isSmallFloat(out.dtype);
  for (let i = 0; i < from.length; i++) {
    const value = from[i]!;
    if (typeof value !== "bigint") setElement(out, { index: i, value: getElement(x, i) });
    else if (isWide(out.dtype)) (to as BigInt64Array)[i] = value;
    else setElement(out, { index: i, value: Number(toFloat ? value : BigInt.asIntN(32, value)) });
  }
}
