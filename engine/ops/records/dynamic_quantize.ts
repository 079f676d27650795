// dynamic_quantize: a tensor as unsigned 8-bit codes with the one scale and zero point that its own
// range, widened to hold 0, asks for. All of it in float32, as ONNX defines it.

import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { roundToEven } from "../../../functions/special.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x f32[…]) → (u8[…], scale f32[], zero u8[]). */
export const dynamicQuantize: OpRecord = defineOp({
  name: "dynamic_quantize",
  summary: "codes, scale and zero point of a tensor's own range",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x" });
    return [
      { dtype: "u8", shape: x.shape },
      { dtype: "f32", shape: [] },
      { dtype: "u8", shape: [] },
    ];
  },
  reference({ inputs: [x], outputs: [codes, scale, zero] }) {
    let least = 0, largest = 0;
    for (let i = 0; i < x!.data.length; i++) {
      least = Math.min(least, getElement(x!, i));
      largest = Math.max(largest, getElement(x!, i));
    }
    const range = Math.fround(largest - least);
    // Of nothing but zeros any scale will do: onnxruntime takes 1.
    const step = range === 0 ? 1 : Math.fround(range / 255);
    const origin = roundToEven(Math.min(255, Math.max(0, Math.fround(-least / step))));
    for (let i = 0; i < x!.data.length; i++) {
      const code = roundToEven(Math.fround(getElement(x!, i) / step)) + origin;
      setElement(codes!, { index: i, value: Math.min(255, Math.max(0, code)) });
    }
    setElement(scale!, { index: 0, value: step });
    setElement(zero!, { index: 0, value: origin });
  },
  cases: (random) =>
    [1, 7, 33, 400].map((count) => ({ name: `[${count}]`, inputs: [random.input([count])] })),
  tolerance: { ofLargest: 4e-3, reason: "a quotient at a rounding edge may give the next code" },
});
