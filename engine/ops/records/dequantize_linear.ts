// dequantize_linear: (code - zero point) · scale. There is one scale and zero point for all, for each
// index of an axis, or for each block along it.

import { choice, integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS } from "../host_numbers.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { CaseInput, OpRecord } from "../op.ts";
import { scaleIndex } from "../quantization.ts";
import { checkInputCount, optionalInput, requireInput } from "../shape_rules.ts";
import { CODE_TYPES } from "./quantize_linear.ts";

/** (x codes[…], scale, zero?) → to[…]. */
export const dequantizeLinear: OpRecord = defineOp({
  name: "dequantize_linear",
  summary: "(code - zero point) · scale",
  attributes: {
    to: choice(["f32", "f16", "bf16", "f64"]),
    axis: integer(0, 0),
    /** Elements of an axis that share a scale; 0: the whole axis, or all. */
    block: integer(0, 0),
  },
  infer(inputs, { to }) {
    checkInputCount(inputs, 3);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: [...CODE_TYPES, "i32"] });
    requireInput(inputs, { index: 1, name: "scale", dtype: [...FLOATS, "f8e8m0"] });
    optionalInput(inputs, { index: 2, name: "zero", dtype: x.dtype });
    return [{ dtype: to, shape: x.shape }];
  },
  reference({ inputs: [x, scale, zero], outputs: [out], attributes: { axis, block } }) {
    const indexOf = scaleIndex(x!.shape, { scale: scale!, axis, block });
    for (let i = 0; i < x!.data.length; i++) {
      const at = indexOf(i), code = getElement(x!, i) - (zero ? getElement(zero, at) : 0);
      setElement(out!, { index: i, value: code * getElement(scale!, at) });
    }
  },
  cases: (random) => [
    ...(["u16", "i4"] as const).map((dtype) => ({
      inputs: [
        { ...random.typed(dtype, [0, 1, 2, 3, 4, 5, 6, 7]), shape: [2, 4] } as CaseInput,
        { ...random.input([4]), shape: [2, 2] } as CaseInput,
        { ...random.typed(dtype, [1, 0, 5, 7]), shape: [2, 2] } as CaseInput,
      ],
      attributes: { to: "f32" as const, axis: 1, block: 2 },
    })),
    ...(["u8", "i8"] as const).flatMap((dtype) =>
      [1, 3].map((count) => ({
        inputs: [
          random.codes(dtype, [2, 3, 37]),
          random.input(count === 1 ? [] : [count]),
          random.codes(dtype, count === 1 ? [] : [count]),
        ],
        attributes: { to: "f32", axis: 1 },
      }))
    ),
    ...(["f16", "bf16", "f64"] as const).map((to) => ({
      inputs: [random.codes("i8", [37]), random.input([])],
      attributes: { to },
    })),
  ],
});
