// Ops that read images at other places: Resize and its older form, grids, columns of windows, crops.

import { compare, type Dim, floorDiv, mul, sub } from "../../graph/dim/mod.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { flag, float, floats, ints, text } from "../derivation/attributes.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { windowOf } from "./window_attributes.ts";

/**
 * ⌊size · scale⌋, the product rounded to float32 as the shape inference of onnx and onnxruntime have it: five times 1.4
 * is 7, though the nearest float32 of 1.4 lies below it. Of sizes not known yet only where nothing is rounded: a scale
 * of at most twelve bits.
 */
function scaledDim(size: Dim, scale: number): Dim {
  if (typeof size === "number") return Math.floor(Math.fround(size * scale));
  let above = scale, below = 1;
  while (!Number.isInteger(above) && below < 2 ** 40) {
    above *= 2;
    below *= 2;
  }
  if (above >= 2 ** 12) throw new RangeError(`scaling by ${scale} needs known sizes`);
  return floorDiv(mul(size, above), below);
}

/** Whether sizes are there and not empty. */
function hasSizes(call: OnnxCall<unknown>): boolean {
  const shape = call.inputs[3]?.type.shape;
  return shape !== undefined && shape[0] !== 0;
}

/** What version 10 and Upsample do. */
const OLD_RULES = { coordinates: "asymmetric", rounding: "floor" } as const;

/** Starts and ends of what is cropped of all axes, as the second input gives them for some. */
function roiOf(call: OnnxCall<unknown>, axes: readonly number[], rank: number): number[] {
  const roi = new Array<number>(2 * rank).fill(0).fill(1, rank), parts = call.numbers(1);
  axes.forEach((axis, i) => {
    roi[axis] = parts[i]!;
    roi[rank + axis] = parts[axes.length + i]!;
  });
  return roi;
}

// Sizes of the result and, where they were given, the exact scales.
function targetOf(
  call: OnnxCall<{ readonly keep_aspect_ratio_policy: string }>,
  { x, axes, scalesIndex }: {
    readonly x: Tensor;
    readonly axes: readonly number[];
    readonly scalesIndex: number;
  },
): { readonly sizes: readonly Dim[]; readonly scales: readonly number[] } {
  const sizes: Dim[] = [...x.type.shape];
  if (!hasSizes(call)) {
    const scales = sizes.map(() => 1);
    call.numbers(scalesIndex).forEach((scale, i) => scales[axes[i]!] = scale);
    return { sizes: sizes.map((size, axis) => scaledDim(size, scales[axis]!)), scales };
  }
  const wanted = call.dims(3);
  const policy = call.attributes.keep_aspect_ratio_policy;
  if (policy === "stretch") {
    axes.forEach((axis, i) => sizes[axis] = wanted[i]!);
    return { sizes, scales: [] };
  }
  const ratios = axes.map((axis, i) => {
    const from = sizes[axis]!, to = wanted[i]!;
    if (typeof from === "number" && typeof to === "number") return to / from;
    throw new RangeError("keeping the aspect ratio needs known sizes");
  });
  const scale = policy === "not_larger" ? Math.min(...ratios) : Math.max(...ratios);
  const scales = sizes.map((_, axis) => axes.includes(axis) ? scale : 1);
  for (const axis of axes) sizes[axis] = Math.floor(scale * (sizes[axis] as number) + 0.5);
  return { sizes, scales };
}

const MODES: Readonly<Record<string, string>> = { bilinear: "linear", bicubic: "cubic" };

function smaller(a: Dim, b: Dim): Dim {
  const order = compare(a, b);
  if (order === "unknown") throw new RangeError("cannot tell which of two dims is smaller");
  return order === ">" || order === ">=" ? b : a;
}

/** Ops that read at other places. */
export const resizingOps: readonly OnnxOp[] = [
  onnxOp("AffineGrid", {
    versions: [20],
    attributes: { align_corners: flag(false) },
    build: (call) =>
      call.op("affine_grid", [call.input(0)], {
        sizes: call.dims(1).slice(2),
        align_corners: call.attributes.align_corners,
      }),
  }),
  /** Odd differences: a crop takes one more from the end, a pad adds one more there. */
  onnxOp("CenterCropPad", {
    versions: [18],
    attributes: { axes: ints(undefined) },
    build(call) {
      const x = call.input(0), { shape } = x.type;
      const wanted: Dim[] = [...shape], target = call.dims(1);
      const axes = call.attributes.axes ?? shape.map((_, axis) => axis);
      axes.forEach((axis, i) => wanted[axisOf(axis, shape.length)] = target[i]!);
      const cropped = shape.map((size, axis) => smaller(size, wanted[axis]!));
      const inner = call.one("slice", [x], {
        starts: shape.map((size, axis) => floorDiv(sub(size, cropped[axis]!), 2)),
        sizes: cropped,
        steps: shape.map(() => 1),
      });
      const before = cropped.map((size, axis) => floorDiv(sub(wanted[axis]!, size), 2));
      const after = cropped.map((size, axis) => sub(sub(wanted[axis]!, size), before[axis]!));
      return call.op("pad", [inner, undefined], { before, after });
    },
  }),
  onnxOp("Col2Im", {
    versions: [18],
    attributes: { dilations: ints([]), pads: ints([]), strides: ints([]) },
    build: (call) =>
      call.op("col2im", [call.input(0)], {
        ...windowOf(call.attributes),
        sizes: call.dims(1),
        kernel: call.numbers(2),
      }),
  }),
  onnxOp("GridSample", {
    versions: [16, 20],
    attributes: {
      align_corners: flag(false),
      mode: text("linear", { choices: ["linear", "bilinear", "nearest", "cubic", "bicubic"] }),
      padding_mode: text("zeros", { choices: ["zeros", "border", "reflection"] }),
    },
    build(call) {
      const { align_corners, mode, padding_mode: padding } = call.attributes;
      const attributes = { mode: MODES[mode] ?? mode, padding, align_corners };
      return call.op("grid_sample", call.take(2), attributes);
    },
  }),
  onnxOp("Resize", {
    versions: [10, 11, 13, 18, 19],
    attributes: {
      antialias: flag(false, { since: 18 }),
      axes: ints(undefined, { since: 18 }),
      coordinate_transformation_mode: text("half_pixel", {
        choices: undefined,
        range: { since: 11 },
      }),
      cubic_coeff_a: float(-0.75, { since: 11 }),
      exclude_outside: flag(false, { since: 11 }),
      extrapolation_value: float(0, { since: 11 }),
      keep_aspect_ratio_policy: text("stretch", {
        choices: ["stretch", "not_larger", "not_smaller"],
        range: { since: 18 },
      }),
      mode: text("nearest", { choices: ["nearest", "linear", "cubic"] }),
      nearest_mode: text("round_prefer_floor", { choices: undefined, range: { since: 11 } }),
    },
    build(call) {
      const { attributes: given, version } = call;
      const x = call.input(0);
      const axes = (given.axes ?? x.type.shape.map((_, axis) => axis))
        .map((axis) => axisOf(axis, x.type.shape.length));
      const { mode, cubic_coeff_a: cubic_a, exclude_outside, antialias } = given;
      const coordinates = given.coordinate_transformation_mode;
      const crops = coordinates === "tf_crop_and_resize";
      return call.op("resize", [x], {
        ...targetOf(call, { x, axes, scalesIndex: version < 11 ? 1 : 2 }),
        ...{ mode, cubic_a, exclude_outside, antialias },
        ...version < 11 ? OLD_RULES : {
          coordinates: crops ? "crop_and_resize" : coordinates,
          rounding: given.nearest_mode,
        },
        roi: crops ? roiOf(call, axes, x.type.shape.length) : [],
        extrapolation: given.extrapolation_value,
      });
    },
  }),
  /** Removed by version 10 of the operator set, still found in files of later ones. */
  onnxOp("Upsample", {
    versions: [7, 9],
    attributes: {
      mode: text("nearest", { choices: ["nearest", "linear"] }),
      scales: floats(undefined, { until: 8 }),
    },
    build(call) {
      const x = call.input(0), scales = call.attributes.scales ?? call.numbers(1);
      const sizes = x.type.shape.map((size, axis) => scaledDim(size, scales[axis]!));
      return call.op("resize", [x], { sizes, scales, mode: call.attributes.mode, ...OLD_RULES });
    },
  }),
];
