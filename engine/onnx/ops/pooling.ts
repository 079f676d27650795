// Pools over windows, over everything and over regions.

import { add, type Dim, mul } from "../../graph/dim/mod.ts";
import { flag, float, int, ints, required, text } from "../derivation/attributes.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";
import { poolAttributes, poolOf } from "./window_attributes.ts";

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
      ceil_mode: flag(false, { since: 10 }),
      count_include_pad: flag(false, { since: 7 }),
      dilations: ints([], { since: 19 }),
    },
    build(call) {
      const { count_include_pad: count_pads } = call.attributes;
      return call.op("pool", [call.input(0)], {
        ...poolOf(call.attributes),
        kind: "average",
        count_pads,
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
      ceil_mode: flag(false, { since: 18 }),
      dilations: ints([], { since: 18 }),
      p: int(2),
    },
    build: (call) =>
      call.op("pool", [call.input(0)], {
        ...poolOf(call.attributes),
        kind: "norm",
        p: call.attributes.p,
      }),
  }),
  onnxOp("MaxPool", {
    versions: [1, 8, 10, 11, 12],
    attributes: {
      ...poolAttributes,
      ceil_mode: flag(false, { since: 10 }),
      dilations: ints([], { since: 10 }),
      storage_order: flag(false, { since: 8 }),
    },
    build: (call) =>
      call.op("max_pool", [call.input(0)], {
        ...poolOf(call.attributes),
        indices: call.wanted[1] === true,
        column_major: call.attributes.storage_order,
      }),
  }),
  onnxOp("MaxRoiPool", {
    versions: [1],
    attributes: { pooled_shape: required(ints(undefined)), spatial_scale: float(1) },
    build(call) {
      const { pooled_shape: [height, width], spatial_scale: scale } = call.attributes;
      const size = { height: height!, width: width! };
      return call.op("max_roi_pool", [call.input(0), call.input(1)], { ...size, scale });
    },
  }),
  onnxOp("MaxUnpool", {
    versions: [9, 11],
    attributes: { kernel_shape: required(ints()), pads: ints([]), strides: ints([]) },
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
      coordinate_transformation_mode: text("half_pixel", {
        choices: ["half_pixel", "output_half_pixel"],
        range: { since: 16 },
      }),
      mode: text("avg", { choices: ["avg", "max"] }),
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
