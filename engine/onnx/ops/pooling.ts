// Pools over windows, over everything and over regions.

import type { Dim } from "../../graph/dim/mod.ts";
import { add, mul } from "../../graph/dim/mod.ts";
import { float, int, ints, required, text } from "../derivation/attributes.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";
import { windowOf } from "./window_attributes.ts";

/** Attributes that pools over windows share. */
export const poolAttributes = {
  auto_pad: text("NOTSET", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]),
  kernel_shape: required(ints(undefined)),
  pads: ints([]),
  strides: ints([]),
} as const;

function globalPool(name: string, kind: "mean" | "max"): OnnxOp {
  return onnxOp(name, {
    versions: [1],
    build(call) {
      const x = call.input(0), axes = x.type.shape.map((_, axis) => axis).slice(2);
      return call.op("reduce", [x], { kind, axes, keep: true });
    },
  });
}

/** Pools. */
export const poolingOps: readonly OnnxOp[] = [
  onnxOp("AveragePool", {
    versions: [1, 7, 10, 11, 19],
    attributes: {
      ...poolAttributes,
      ceil_mode: int(0, { since: 10 }),
      count_include_pad: int(0, { since: 7 }),
      dilations: ints([], { since: 19 }),
    },
    build(call) {
      const { kernel_shape: kernel, ceil_mode, count_include_pad } = call.attributes;
      return call.op("pool", [call.input(0)], {
        ...windowOf(call.attributes),
        ...{ kind: "average", kernel },
        ceil: ceil_mode !== 0,
        count_pads: count_include_pad !== 0,
      });
    },
  }),
  globalPool("GlobalAveragePool", "mean"),
  globalPool("GlobalMaxPool", "max"),
  onnxOp("GlobalLpPool", {
    versions: [2],
    attributes: { p: int(2) },
    build(call) {
      const x = call.input(0), { p } = call.attributes;
      const sizes = x.type.shape.slice(2), axes = sizes.map((_, axis) => axis + 2);
      if (p === 1 || p === 2) return call.op("reduce", [x], { kind: `l${p}`, axes, keep: true });
      const kernel = sizes.map((size) => {
        if (typeof size === "number") return size;
        throw new RangeError("a p-norm beyond 2 needs known sizes");
      });
      return call.op("pool", [x], { kind: "norm", kernel, p });
    },
  }),
  onnxOp("LpPool", {
    versions: [2, 11, 18],
    attributes: {
      ...poolAttributes,
      ceil_mode: int(0, { since: 18 }),
      dilations: ints([], { since: 18 }),
      p: int(2),
    },
    build(call) {
      const { kernel_shape: kernel, ceil_mode, p } = call.attributes;
      return call.op("pool", [call.input(0)], {
        ...windowOf(call.attributes),
        ...{ kind: "norm", kernel, p },
        ceil: ceil_mode !== 0,
      });
    },
  }),
  onnxOp("MaxPool", {
    versions: [1, 8, 10, 11, 12],
    attributes: {
      ...poolAttributes,
      ceil_mode: int(0, { since: 10 }),
      dilations: ints([], { since: 10 }),
      storage_order: int(0, { since: 8 }),
    },
    build(call) {
      const { kernel_shape: kernel, ceil_mode, storage_order } = call.attributes;
      return call.op("max_pool", [call.input(0)], {
        ...windowOf(call.attributes),
        kernel,
        ceil: ceil_mode !== 0,
        indices: call.wanted[1] === true,
        column_major: storage_order !== 0,
      });
    },
  }),
  onnxOp("MaxRoiPool", {
    versions: [1],
    attributes: { pooled_shape: required(ints(undefined)), spatial_scale: float(1) },
    build(call) {
      const { pooled_shape: [height, width], spatial_scale: scale } = call.attributes;
      return call.op("max_roi_pool", [call.input(0), call.input(1)], {
        height: height!,
        width: width!,
        scale,
      });
    },
  }),
  onnxOp("MaxUnpool", {
    versions: [9, 11],
    attributes: {
      kernel_shape: poolAttributes.kernel_shape,
      pads: ints([]),
      strides: ints([]),
    },
    build(call) {
      const { kernel_shape: kernel, pads, strides } = call.attributes;
      const x = call.input(0), rank = kernel.length;
      const counted = x.type.shape.map((size, i): Dim => {
        const axis = i - 2;
        if (axis < 0) return size;
        const taken = (pads[axis] ?? 0) + (pads[rank + axis] ?? 0);
        return add(mul(add(size, -1), strides[axis] ?? 1), kernel[axis]! - taken);
      });
      const shape = call.inputs[2] ? call.dims(2) : counted;
      return call.op("max_unpool", [x, call.input(1)], { shape, counted });
    },
  }),
  onnxOp("RoiAlign", {
    versions: [10, 16],
    attributes: {
      coordinate_transformation_mode: text("half_pixel", ["half_pixel", "output_half_pixel"], {
        since: 16,
      }),
      mode: text("avg", ["avg", "max"]),
      output_height: int(1),
      output_width: int(1),
      sampling_ratio: int(0),
      spatial_scale: float(1),
    },
    build(call) {
      const { attributes: given, version } = call;
      return call.op("roi_align", [0, 1, 2].map((i) => call.input(i)), {
        height: given.output_height,
        width: given.output_width,
        kind: given.mode === "avg" ? "average" : "max",
        samples: given.sampling_ratio,
        scale: given.spatial_scale,
        half_pixel: version >= 16 && given.coordinate_transformation_mode === "half_pixel",
      });
    },
  }),
];
