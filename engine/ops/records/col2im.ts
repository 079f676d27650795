// col2im: columns of windows added back to the places that they came from, one to three spatial dims.

import { dims, integersFrom } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { convolveTransposed } from "../convolve.ts";
import { evaluate, exactDiv, product } from "../../graph/dim/mod.ts";
import { FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import { elementCount } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";
import { completeWindow, WINDOW_RULES, windowDims, windowLoops } from "../windows.ts";

/** (x [N, C · taps, windows]) → [N, C, …sizes]. */
export const col2im: OpRecord = defineOp({
  name: "col2im",
  summary: "columns of windows added back to their places",
  attributes: { ...WINDOW_RULES, kernel: integersFrom(1), sizes: dims() },
  infer(inputs, attributes) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, rank: 3 });
    const channels = exactDiv(x.shape[1]!, elementCount(attributes.kernel));
    if (channels === undefined) throw new RangeError("the rows of x must be channels times taps");
    const places = windowDims(attributes.sizes, { window: completeWindow(attributes) });
    requireEqual(product(places), { b: x.shape[2]!, what: "the columns of x and the windows" });
    return [{ dtype: x.dtype, shape: [x.shape[0]!, channels, ...attributes.sizes] }];
  },
  reference({ inputs: [x], outputs: [out], attributes, env }) {
    const [batch, channels] = out!.shape as [number, number];
    const taps = elementCount(attributes.kernel), sizes = out!.shape.slice(2);
    const window = completeWindow(attributes);
    const places = windowDims(sizes, { window }).map((dim) => evaluate(dim, env));
    const y = new Float64Array(out!.data.length);
    // A transposed convolution whose taps are channels of their own, each with a single weight.
    const one = new Float64Array(taps * taps);
    for (let tap = 0; tap < taps; tap++) one[tap * taps + tap] = 1;
    const columns = numbersOf(x!), loops = windowLoops(sizes, { out: places, window });
    const perChannel = taps * elementCount(places), plane = elementCount(sizes);
    for (let i = 0; i < batch * channels; i++) {
      const shape = { batch: 1, channels: taps, filters: 1, groups: 1 };
      const target = y.subarray(i * plane, (i + 1) * plane);
      convolveTransposed(columns.subarray(i * perChannel), {
        w: one,
        y: target,
        sizes: shape,
        loops,
      });
    }
    storeNumbers(out!, y);
  },
  cases: (random) => [
    {
      name: "windows side by side",
      inputs: [random.input([1, 8, 6])],
      attributes: { kernel: [2, 2], strides: [2, 2], pads: [0, 0, 0, 0], sizes: [4, 6] },
    },
    {
      name: "windows that overlap, with pads",
      inputs: [random.input([2, 9, 20])],
      attributes: { kernel: [3, 3], strides: [1, 1], pads: [1, 1, 1, 1], sizes: [4, 5] },
    },
    ...(["same_upper", "same_lower"] as const).map((padding) => ({
      inputs: [random.input([1, 8, 6])],
      attributes: { kernel: [2, 2], strides: [2, 2], dilations: [2, 1], padding, sizes: [4, 5] },
    })),
  ],
});
