// conv_transpose: the transposed (fractionally strided) convolution: each input place adds its multiple
// of the kernel to the output.

import { EPILOGUE_NAMES } from "../../../functions/unary.ts";
import { activations } from "../activations.ts";
import { choice, integer, integersFrom } from "../attributes.ts";
import { convolveTransposed } from "../convolve.ts";
import { defineOp } from "../define_op.ts";
import { exactDiv, formatDim, mul } from "../../graph/dim/mod.ts";
import { FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import { getElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import {
  checkInputCount,
  optionalInput,
  requireEqual,
  requireInput,
  requireStatic,
} from "../shape_rules.ts";
import { completeWindow, transposedDims, WINDOW_RULES, windowLoops } from "../windows.ts";

/** (x [N, C, …], w [C, F / groups, …], bias [F]?) → [N, F, …], of one float type. */
export const convTranspose: OpRecord = defineOp({
  name: "conv_transpose",
  summary: "transposed convolution over 1 to 3 spatial dims",
  attributes: {
    ...WINDOW_RULES,
    groups: integer(1, 1),
    /** Places added at the end of each dim. */
    output_padding: integersFrom(0, []),
    activation: choice(EPILOGUE_NAMES, "none"),
  },
  infer(inputs, attributes) {
    checkInputCount(inputs, 3);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 3 });
    const w = requireInput(inputs, { index: 1, name: "w", dtype: x.dtype, rank: x.shape.length });
    const bias = optionalInput(inputs, { index: 2, name: "bias", dtype: x.dtype, rank: 1 });
    requireEqual(x.shape[1]!, { b: w.shape[0]!, what: "the channels of x and of the weight" });
    if (exactDiv(x.shape[1]!, attributes.groups) === undefined) {
      throw new RangeError(
        `${formatDim(x.shape[1]!)} channels: must be a multiple of ${attributes.groups} groups`,
      );
    }
    const filters = mul(w.shape[1]!, attributes.groups);
    if (bias) requireEqual(bias.shape[0]!, { b: filters, what: "the bias and the filters" });
    const kernel = w.shape.slice(2).map((dim) => requireStatic(dim, "the kernel's extent"));
    const window = completeWindow({ ...attributes, kernel });
    const spatial = transposedDims(x.shape.slice(2), {
      window,
      outputPadding: attributes.output_padding,
    });
    return [{ dtype: x.dtype, shape: [x.shape[0]!, filters, ...spatial] }];
  },
  reference({ inputs: [x, w, bias], outputs: [out], attributes }) {
    const [batch, filters, ...size] = out!.shape as [number, number, ...number[]];
    const places = size.reduce((a, b) => a * b, 1);
    const y = new Float64Array(out!.data.length);
    if (bias) {
      for (let i = 0; i < y.length; i++) y[i] = getElement(bias, Math.floor(i / places) % filters);
    }
    const window = completeWindow({ ...attributes, kernel: w!.shape.slice(2) });
    const sizes = { batch, channels: x!.shape[1]!, filters, groups: attributes.groups };
    const loops = windowLoops(size, { out: x!.shape.slice(2), window });
    convolveTransposed(numbersOf(x!), { w: numbersOf(w!), y, sizes, loops });
    storeNumbers(out!, y.map(activations[attributes.activation]));
  },
  cases: (random) =>
    ([
      [[1, 2, 5], [2, 3, 3], { activation: "relu6" }],
      [[1, 4, 5, 7], [4, 3, 3, 3], { strides: [2, 2], pads: [1, 1, 1, 1], output_padding: [1, 1] }],
      [[2, 4, 5, 7], [4, 3, 2, 2], { strides: [2, 2], activation: "relu" }],
      [[1, 70, 2, 135], [70, 2, 3, 1], { strides: [3, 1], groups: 2 }],
      [[1, 3, 4, 17], [3, 2, 2, 3], { strides: [2, 3], activation: "hard_swish" }],
      [[1, 4, 5, 7], [4, 2, 3, 3], { strides: [2, 3], padding: "same_upper", groups: 2 }],
      [[1, 4, 5, 7], [4, 2, 3, 3], {
        ...{ strides: [2, 3], padding: "same_lower", activation: "silu" },
      }],
      [[1, 4, 3, 5], [4, 2, 3, 3], { activation: "sigmoid" }],
      [[1, 2, 3, 4, 5], [2, 2, 2, 2, 2], { strides: [2, 1, 2], dilations: [1, 2, 1] }],
    ] as const).map(([x, w, attributes]) => ({
      inputs: [
        random.input(x),
        random.input(w),
        random.weight("F32", [w[1] * ("groups" in attributes ? attributes.groups : 1)]),
      ],
      attributes,
    })),
});
