// conv: cross-correlation over one to three spatial dims, with groups, strides, dilations and pads.

import { EPILOGUE_NAMES } from "../../../functions/unary.ts";
import { activations } from "../activations.ts";
import { choice, integer, numbers } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { convolve } from "../convolve.ts";
import { defineOp } from "../define_op.ts";
import { type Dim, exactDiv, formatDim, mul, symbol } from "../../graph/dim/mod.ts";
import type { TensorType } from "../../graph/graph.ts";
import { FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import { elementCount, getElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import type { CaseInput, CaseRandom, OpCase } from "../op_case.ts";
import {
  checkInputCount,
  optionalInput,
  requireEqual,
  requireInput,
  requireStatic,
} from "../shape_rules.ts";
import {
  completeWindow,
  WINDOW_RULES,
  type WindowAttributes,
  windowDims,
  windowLoops,
} from "../windows.ts";

/** Attributes of a convolution but the kernel, which the weight tells. */
export const CONV_RULES = { ...WINDOW_RULES, groups: integer(1, 1) } as const;

/** What `CONV_RULES` lets through. */
export interface ConvAttributes extends Omit<WindowAttributes, "kernel"> {
  readonly groups: number;
}

/** (x [N, C, …], w [F, C / groups, …], bias [F]?, branch [N, F, …]?) → [N, F, …], of one float type. */
export const conv: OpRecord = defineOp({
  name: "conv",
  summary: "convolution over 1 to 3 spatial dims",
  attributes: {
    ...CONV_RULES,
    activation: choice(EPILOGUE_NAMES, "none"),
    // How often each element of x stands along each spatial dim, as if it were up-sampled before; empty: once.
    repeats: numbers([]),
  },
  infer(inputs, attributes) {
    checkInputCount(inputs, 4);
    const given = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 3 });
    const x = { ...given, shape: repeatedShape(given.shape, attributes.repeats) };
    const w = requireInput(inputs, { index: 1, name: "w", dtype: x.dtype, rank: x.shape.length });
    const bias = optionalInput(inputs, { index: 2, name: "bias", dtype: x.dtype, rank: 1 });
    if (bias) requireEqual(bias.shape[0]!, { b: w.shape[0]!, what: "the bias and the filters" });
    const shape = convShape(x, { w, attributes });
    const branch = optionalInput(inputs, {
      index: 3,
      name: "branch",
      dtype: x.dtype,
      rank: shape.length,
    });
    if (branch) {
      shape.forEach((dim, i) =>
        requireEqual(dim, { b: branch.shape[i]!, what: "the dims of the result and the branch" })
      );
    }
    return [{ dtype: x.dtype, shape }];
  },
  reference({ inputs: [given, w, bias, branch], outputs: [out], attributes }) {
    const x = repeated(given!, attributes.repeats);
    const y = new Float64Array(out!.data.length);
    const places = y.length / (out!.shape[0]! * out!.shape[1]!);
    if (bias) {
      for (let i = 0; i < y.length; i++) {
        y[i] = getElement(bias, Math.floor(i / places) % out!.shape[1]!);
      }
    }
    for (let i = 0; branch && i < y.length; i++) y[i]! += getElement(branch, i);
    const { sizes, loops } = convLoops(x, { w: w!, out: out!, attributes });
    convolve(numbersOf(x), { w: numbersOf(w!), y, sizes, loops });
    storeNumbers(out!, y.map(activations[attributes.activation]));
  },
  cases: convCases,
});

/** A shape whose elements stand so often along each spatial dim. */
export function repeatedShape(shape: readonly Dim[], repeats: readonly number[]): Dim[] {
  if (repeats.length > 0 && repeats.length !== shape.length - 2) {
    throw new RangeError(`repeats has ${repeats.length} entries, x ${shape.length - 2} dims`);
  }
  return shape.map((size, axis) => axis < 2 ? size : mul(size, repeats[axis - 2] ?? 1));
}

function repeated(x: HostTensor, repeats: readonly number[]): HostTensor {
  if (repeats.length === 0) return x;
  const shape = repeatedShape(x.shape, repeats) as number[];
  const data = new Float32Array(elementCount(shape));
  for (let i = 0; i < data.length; i++) {
    let rest = i, at = 0, step = 1;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const place = rest % shape[axis]!;
      rest = Math.floor(rest / shape[axis]!);
      at += Math.floor(place / (repeats[axis - 2] ?? 1)) * step;
      step *= x.shape[axis]!;
    }
    data[i] = getElement(x, at);
  }
  return { dtype: "f32", shape, data };
}

/** Shape of the output. */
export function convShape(
  x: TensorType,
  { w, attributes }: { readonly w: TensorType; readonly attributes: ConvAttributes },
): Dim[] {
  const { groups } = attributes;
  const filters = w.shape[0]!, channels = exactDiv(x.shape[1]!, groups);
  if (channels === undefined || exactDiv(filters, groups) === undefined) {
    throw new RangeError(
      `${formatDim(x.shape[1]!)} channels and ${formatDim(filters)} filters: ` +
        `must be multiples of ${groups} groups`,
    );
  }
  requireEqual(channels, { b: w.shape[1]!, what: "the channels of a group and of the weight" });
  const window = completeWindow({ ...attributes, kernel: kernelOf(w) });
  return [x.shape[0]!, filters, ...windowDims(x.shape.slice(2), { window })];
}

function kernelOf(w: TensorType): number[] {
  return w.shape.slice(2).map((dim) => requireStatic(dim, "the kernel's extent"));
}

/** Sizes and loops over concrete tensors. */
export function convLoops(
  x: HostTensor,
  { w, out, attributes }: {
    readonly w: HostTensor;
    readonly out: HostTensor;
    readonly attributes: ConvAttributes;
  },
): Pick<Parameters<typeof convolve>[1], "sizes" | "loops"> {
  const window = completeWindow({ ...attributes, kernel: w.shape.slice(2) });
  const [batch, channels] = x.shape as [number, number];
  const sizes = { batch, channels, filters: w.shape[0]!, groups: attributes.groups };
  return { sizes, loops: windowLoops(x.shape.slice(2), { out: out.shape.slice(2), window }) };
}

/** Inputs, weights and windows of the cases of convolutions. */
export const CONV_CASES: readonly (readonly [
  x: readonly number[],
  w: readonly number[],
  attributes: Partial<ConvAttributes> & { readonly activation?: typeof EPILOGUE_NAMES[number] },
])[] = [
  [[1, 3, 9], [5, 3, 3], { pads: [1, 1] }],
  [[2, 4, 7, 9], [6, 4, 1, 1], {}],
  [[1, 4, 7, 9], [33, 4, 1, 1], { strides: [2, 2] }],
  [[1, 3, 11, 13], [8, 3, 3, 3], { pads: [1, 1, 1, 1] }],
  [[1, 3, 11, 13], [7, 3, 3, 3], { strides: [2, 2], padding: "same_upper" }],
  [[1, 3, 10, 12], [4, 3, 4, 2], { strides: [1, 3], padding: "same_lower" }],
  [[1, 8, 9, 17], [8, 1, 3, 3], { groups: 8, pads: [1, 1, 1, 1] }],
  [[1, 6, 9, 17], [6, 1, 5, 5], { groups: 6, strides: [2, 2], pads: [2, 2, 2, 2] }],
  [[1, 6, 8, 8], [9, 2, 3, 3], { groups: 3, dilations: [2, 1] }],
  [[1, 16, 20, 36], [24, 16, 3, 3], { pads: [1, 0, 1, 2] }],
  [[2, 2, 4, 5, 6], [3, 2, 2, 3, 3], { pads: [0, 1, 1, 1, 1, 1] }],
];

/** Cases that reach the ends of what kernels pack at a time: channels, filters, places. */
const LARGE_CASES: typeof CONV_CASES = [
  [[1, 300, 2, 20], [100, 300, 1, 1], {}],
  [[1, 90, 3, 41], [7, 90, 3, 3], { pads: [1, 1, 1, 1] }],
  [[2, 60, 9, 31], [27, 60, 3, 3], { pads: [1, 1, 1, 1], activation: "relu" }],
  [[1, 32, 6, 101], [16, 32, 3, 3], { pads: [0, 2, 1, 0] }],
  [[1, 210, 4, 80], [16, 210, 3, 3], { pads: [1, 1, 1, 1] }],
  [[1, 60, 5, 67], [26, 60, 3, 3], { strides: [2, 2], pads: [1, 1, 1, 1] }],
  [[1, 2, 3, 300], [9, 2, 3, 3], { pads: [0, 1, 0, 1] }],
  [[1, 2, 1, 530], [1, 2, 1, 3], { strides: [1, 2] }],
  [[2, 5, 70], [9, 5, 32], { strides: [16], pads: [3, 0] }],
  [[1, 33, 5], [70, 33, 3], { strides: [2], pads: [1, 1] }],
  [[2, 24, 1, 1], [10, 12, 1, 1], { groups: 2 }],
  [[1, 3, 5, 21], [2, 3, 2, 3], { dilations: [2, 4] }],
  [[1, 4, 40, 70], [4, 1, 3, 3], { groups: 4, pads: [1, 1, 1, 1] }],
  [[1, 4, 20, 67], [8, 1, 5, 5], { groups: 4, pads: [2, 2, 2, 2] }],
  [[1, 2, 9, 21], [2, 1, 2, 5], { groups: 2, dilations: [3, 1] }],
  [[1, 3, 9, 30], [6, 1, 3, 5], { groups: 3, strides: [1, 3], dilations: [3, 2] }],
  [[1, 35, 14, 14], [18, 35, 3, 3], { pads: [1, 1, 1, 1] }],
];

function convCases(random: CaseRandom): OpCase[] {
  const plain = [...CONV_CASES, ...LARGE_CASES].map(([x, w, attributes], i) => ({
    name: `[${x}] * [${w}], ${JSON.stringify(attributes)}`,
    inputs: [random.input(x), random.input(w), i % 2 ? random.weight("F32", [w[0]!]) : undefined],
    attributes,
  }));
  // Planned for larger images than those that come.
  const height = symbol("H"), width = symbol("W");
  const open = ([[8, 8, 3, 1], [6, 1, 3, 6], [9, 3, 1, 2]] as const).map((
    [filters, channels, taps, groups],
  ) => {
    const bindings = { M: 2, H: 9, W: 37 };
    return {
      name: `any image * [${filters}, ${channels}, ${taps}, ${taps}], ${groups} groups`,
      inputs: [
        random.input([ROWS, channels * groups, height, width], bindings),
        random.input([filters - filters % groups, channels, taps, taps]),
      ],
      attributes: { groups, strides: [taps === 1 ? 1 : 2, 1], pads: [1, 1, 1, 1] },
      bindings,
    };
  });
  const active = EPILOGUE_NAMES.flatMap((activation) =>
    [1, 8].map((groups) => ({
      name: `${activation}, ${groups} groups`,
      inputs: [random.input([1, 8, 5, 21]), random.input([8, 8 / groups, 3, 3])],
      attributes: { groups, activation, pads: [1, 1, 1, 1] },
    }))
  );
  // Kernels may rearrange weights that are known.
  const known = ([
    [[2, 6, 5, 7], [5, 6, 3, 2], { pads: [1, 0, 1, 2], strides: [2, 1], activation: "sigmoid" }],
    [[1, 16, 4, 5], [16, 8, 1, 1], { groups: 2 }],
    [[2, 2, 4, 5, 6], [3, 2, 2, 3, 3], { pads: [0, 1, 1, 1, 1, 1] }],
  ] as typeof CONV_CASES).map(([x, w, attributes]) => ({
    name: `[${x}] * known [${w}], ${JSON.stringify(attributes)}`,
    inputs: [
      random.input(x),
      { ...random.input(w), role: "constant" } as CaseInput,
      random.weight("F32", [w[0]!]),
    ],
    attributes,
  }));
  // Kernels may take weights as they lie in files.
  const packed = ([
    ["F16", [2, 20, 7, 9], [70, 20, 3, 3], { pads: [1, 1, 1, 1], activation: "silu" }],
    ["F32", [1, 40, 5, 60], [24, 20, 1, 1], { groups: 2, strides: [1, 2] }],
    ["BF16", [1, 3, 20, 21], [9, 3, 7, 7], { strides: [2, 2], pads: [3, 3, 3, 3] }],
    ["F16", [2, 18, 22, 25], [20, 18, 3, 3], { pads: [1, 1, 0, 2], activation: "silu" }],
    ["F16", [2, 16, 11, 13], [17, 16, 3, 3], { pads: [1, 1, 1, 1], repeats: [2, 3] }],
    ["F16", [1, 6, 4, 5, 6], [8, 6, 2, 3, 3], { pads: [0, 1, 1, 1, 1, 1] }],
  ] as const).map(([format, x, w, attributes]) => ({
    name: `[${x}] * ${format} [${w}], ${JSON.stringify(attributes)}`,
    inputs: [random.input(x), random.weight(format, w), random.weight("F32", [w[0]])],
    attributes,
  }));
  const wide = { strides: [2], pads: [0, 4] };
  const apart = {
    name: `places that lie apart, as many as before, ${JSON.stringify(wide)}`,
    inputs: [random.input([2, 3, 5]), random.input([4, 3, 1])],
    attributes: wide,
  };
  // More taps than are packed at a time, and a branch.
  const long = ([
    [[1, 300, 9, 9], [14, 300, 3, 3], { pads: [1, 1, 1, 1], activation: "silu" }],
    [[2, 600, 7, 7], [10, 300, 3, 3], { pads: [1, 1, 1, 1], activation: "relu", groups: 2 }],
  ] as typeof CONV_CASES).map(([x, w, attributes]) => ({
    name: `[${x}] * [${w}], ${JSON.stringify(attributes)}`,
    inputs: [random.input(x), random.input(w), random.weight("F32", [w[0]!])],
    attributes,
  }));
  const branched = ([
    [[1, 60, 7, 7], [33, 60, 1, 1], [1, 33, 7, 7], { activation: "relu" }],
    [[2, 31, 5, 9], [14, 31, 1, 1], [2, 14, 5, 9], { activation: "silu" }],
    [[1, 2100, 5, 23], [8, 2100, 1, 1], [1, 8, 3, 12], { strides: [2, 2] }],
    [[1, 8, 2, 3], [8, 4, 3, 3], [1, 8, 2, 3], { pads: [1, 1, 1, 1], groups: 2 }],
    [[1, 31, 7, 7], [33, 31, 1, 1], [1, 33, 7, 7], {}],
  ] as const).map(([x, w, y, attributes], i) => ({
    name: `[${x}] * [${w}] + branch, ${JSON.stringify(attributes)}`,
    inputs: [
      ...[random.input(x), random.input(w)],
      i % 2 ? random.weight("F32", [w[0]]) : undefined,
      random.input(y),
    ],
    attributes,
  }));
  return [...plain, ...open, ...active, ...known, ...packed, apart, ...long, ...branched];
}
