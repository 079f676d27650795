// quantize_linear: x / scale + zero point, rounded to nearest even and kept within the element type.
// There is one scale and zero point for all, for each index of an axis, or for each block along it.

import { encodeSmallFloat, isSmallFloat } from "../../../quant/small_floats.ts";
import { choice, flag, integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS } from "../host_numbers.ts";
import { elementCount, getElement, setElement } from "../host_tensor.ts";
import type { CaseInput, CaseRandom, OpRecord } from "../op.ts";
import { roundToEven } from "../../../functions/special.ts";
import { CODE_RANGES, scaleIndex } from "../quantization.ts";
import { checkInputCount, optionalInput, requireInput } from "../shape_rules.ts";

/** Types of codes. */
export const CODE_TYPES = [
  ...["u8", "i8", "u16", "i16", "u4", "i4", "u2", "i2"] as const,
  ...["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"] as const,
] as const;

/** (x [… ], scale, zero?) → to[…]. */
export const quantizeLinear: OpRecord = defineOp({
  name: "quantize_linear",
  summary: "x / scale + zero point as codes",
  attributes: {
    to: choice(CODE_TYPES),
    axis: integer(0, 0),
    /** Elements of an axis that share a scale; 0: the whole axis, or all. */
    block: integer(0, 0),
    /** Of 8-bit floats: beyond the largest, the largest instead of infinity or NaN. */
    saturate: flag(true),
    /** In what the quotient is computed. */
    precision: choice(["f32", "f16", "bf16", "f64"], "f32"),
  },
  infer(inputs, { to }) {
    checkInputCount(inputs, 3);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: [...FLOATS, "i32"] });
    requireInput(inputs, { index: 1, name: "scale", dtype: [...FLOATS, "f8e8m0"] });
    optionalInput(inputs, { index: 2, name: "zero", dtype: to });
    return [{ dtype: to, shape: x.shape }];
  },
  reference({ inputs: [x, scale, zero], outputs: [out], attributes }) {
    const { to, axis, block, saturate, precision } = attributes;
    const indexOf = scaleIndex(x!.shape, { scale: scale!, axis, block });
    const rounded = { dtype: precision, shape: [1], data: new ONE[precision](1) };
    const range = CODE_RANGES[to];
    for (let i = 0; i < x!.data.length; i++) {
      const at = indexOf(i);
      setElement(rounded, { index: 0, value: getElement(x!, i) / getElement(scale!, at) });
      const quotient = getElement(rounded, 0), move = zero ? getElement(zero, at) : 0;
      if (range) {
        const code = roundToEven(quotient) + move;
        setElement(out!, { index: i, value: Math.min(range[1], Math.max(range[0], code)) });
      } else if (isSmallFloat(to)) {
        out!.data[i] = encodeSmallFloat(to, quotient + move, { saturate });
      }
    }
  },
  cases: (random) => [
    ...CODE_TYPES.map((to) => ({
      inputs: [random.input([3, 4]), positive(random, [3, 2])],
      attributes: { to, axis: 1, block: 2 },
    })),
    ...(["u8", "i8"] as const).flatMap((to) =>
      [1, 3].map((count) => ({
        inputs: [
          random.input([2, 3, 37]),
          {
            role: "input" as const,
            dtype: "f32" as const,
            shape: count === 1 ? [] : [count],
            data: Float32Array.from({ length: count }, (_, i) => 0.01 * (i + 1)),
          },
          random.codes(to, count === 1 ? [] : [count]),
        ],
        attributes: { to, axis: 1 },
      }))
    ),
    ...CODE_TYPES.filter((to) => to.startsWith("f")).map((to) => ({
      inputs: [random.input([7]), positive(random, [])],
      attributes: { to, saturate: false },
    })),
    ...(["f16", "bf16", "f64"] as const).map((precision) => ({
      inputs: [random.input([37]), positive(random, [])],
      attributes: { to: "i8" as const, precision },
    })),
  ],
  tolerance: { ofLargest: 8e-3, reason: "a quotient at a rounding edge may give the next code" },
});

const ONE = { f32: Float32Array, f64: Float64Array, f16: Uint16Array, bf16: Uint16Array } as const;

function positive(random: CaseRandom, shape: readonly number[]): CaseInput {
  const data = random.normal(elementCount(shape)).map((value) => Math.abs(value) / 50 + 0.01);
  return { role: "input", dtype: "f32", shape, data };
}
