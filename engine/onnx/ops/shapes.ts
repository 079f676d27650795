// Ops that read shapes or change nothing but the shape: they become views, or vanish into dims.

import { type Dim, equal, exactDiv, floorDiv, product } from "../../graph/dim/mod.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { elementCount } from "../../ops/host_tensor.ts";
import { broadcastShapes } from "../../ops/shape_rules.ts";
import { int, ints } from "../derivation/attributes.ts";
import { scalarTensor } from "../derivation/host_tensors.ts";
import { type HostCall, type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";

function unitAxes(shape: readonly Dim[]): number[] {
  return shape.flatMap((dim, axis) => {
    if (typeof dim === "number") return dim === 1 ? [axis] : [];
    throw new RangeError("which dims are 1 depends on the bindings: axes must be given");
  });
}

/** The same elements under another shape. */
function view(call: OnnxCall<unknown>, x: Tensor, shape: readonly Dim[]): Tensor[] {
  return call.op("reshape", [x], { shape });
}

function resolve(before: readonly Dim[], sizes: readonly Dim[]): Dim[] {
  const open = sizes.flatMap((size, axis) => equal(size, -1) ? [axis] : []);
  if (open.length === 0) return [...sizes];
  if (open.length > 1) throw new RangeError("more than one size is -1");
  const total = product(before), rest = product(sizes.filter((_, axis) => axis !== open[0]));
  if (equal(rest, 0)) throw new RangeError("a size of -1 cannot be found beside a size of 0");
  const found = exactDiv(total, rest) ?? floorDiv(total, rest);
  return sizes.map((size, axis) => axis === open[0] ? found : size);
}

function shapeOfStrings({ inputs: [x], node }: HostCall<unknown>): readonly number[] {
  if (x && "shape" in x) return x.shape;
  throw new TypeError(`input 0 of ${node.name} must be a tensor`);
}

/** Ops about shapes. */
export const shapeOps: readonly OnnxOp[] = [
  onnxOp("Expand", {
    versions: [8],
    moves: true,
    build(call) {
      const x = call.input(0);
      const shape = broadcastShapes(x.type.shape, call.dims(1));
      return call.op("expand", [x], { shape });
    },
  }),
  onnxOp("Flatten", {
    versions: [1, 9, 11],
    moves: true,
    attributes: { axis: int(1) },
    build(call) {
      const x = call.input(0);
      const { shape } = x.type;
      const axis = call.attributes.axis === shape.length
        ? shape.length
        : axisOf(call.attributes.axis, shape.length);
      return view(call, x, [product(shape.slice(0, axis)), product(shape.slice(axis))]);
    },
  }),
  onnxOp("Identity", {
    versions: [1],
    build: (call) => [call.input(0)],
    // Strings, sequences and optionals.
    evaluate: (call) => [call.inputs[0]],
  }),
  /**
   * Reshape. 0 keeps a size unless `allowzero`; one -1 is what is left over. Up to version 4 the sizes are an
   * attribute.
   */
  onnxOp("Reshape", {
    versions: [1, 5, 14],
    moves: true,
    attributes: {
      allowzero: int(0, { since: 14 }),
      consumed_inputs: ints(undefined, { until: 1 }),
      shape: ints(undefined, { until: 1 }),
    },
    build(call) {
      const x = call.input(0);
      const given = call.version < 5 ? call.attributes.shape : call.dims(1);
      if (!given) throw new TypeError("the new shape is missing");
      const sizes = given.map((size, axis): Dim => {
        if (size !== 0 || call.attributes.allowzero) return size;
        const kept = x.type.shape[axis];
        if (kept === undefined) throw new RangeError(`size 0 at ${axis} keeps a dim that x lacks`);
        return kept;
      });
      return [call.one("reshape", [x], { shape: resolve(x.type.shape, sizes) })];
    },
  }),
  onnxOp("Shape", {
    versions: [1, 15],
    attributes: { start: int(0, { since: 15 }), end: int(undefined, { since: 15 }) },
    build(call) {
      const { start, end } = call.attributes;
      // Like JavaScript's slice, which clamps as the op does.
      return [call.fromDims(call.input(0).type.shape.slice(start, end))];
    },
    evaluate(call) {
      const { start, end } = call.attributes;
      const sizes = shapeOfStrings(call).slice(start, end);
      return [{
        dtype: "i64",
        shape: [sizes.length],
        data: BigInt64Array.from(sizes, BigInt),
      }];
    },
  }),
  onnxOp("Size", {
    versions: [1],
    build: (call) => [call.fromDims([product(call.input(0).type.shape)], "i64", [])],
    evaluate: (call) => [scalarTensor("i64", elementCount(shapeOfStrings(call)))],
  }),
  onnxOp("Squeeze", {
    versions: [1, 11, 13],
    moves: true,
    attributes: { axes: ints(undefined, { until: 12 }) },
    build(call) {
      const x = call.input(0);
      const { shape } = x.type;
      const given = call.inputs[1] ? call.numbers(1) : call.attributes.axes;
      const axes = given?.map((axis) => axisOf(axis, shape.length)) ?? unitAxes(shape);
      for (const axis of axes) {
        if (typeof shape[axis] === "number" && shape[axis] !== 1) {
          throw new RangeError(`cannot squeeze dim ${axis}, which is ${shape[axis]}`);
        }
      }
      return view(call, x, shape.filter((_, axis) => !axes.includes(axis)));
    },
  }),
  /** Tile: up to version 5 the same number along one axis, given as two scalars. */
  onnxOp("Tile", {
    versions: [1, 6],
    moves: true,
    build(call) {
      const x = call.input(0);
      if (call.version >= 6) return call.op("tile", [x], { repeats: call.dims(1) });
      const [times] = call.dims(1), [axis] = call.numbers(2);
      const repeats = x.type.shape.map((_, at): Dim => at === axis ? times! : 1);
      return call.op("tile", [x], { repeats });
    },
  }),
  onnxOp("Unsqueeze", {
    versions: [1, 11, 13],
    moves: true,
    attributes: { axes: ints(undefined, { until: 12 }) },
    build(call) {
      const x = call.input(0);
      const given = call.version < 13 ? call.attributes.axes : call.numbers(1);
      if (!given) throw new TypeError("axes are missing");
      const rank = x.type.shape.length + given.length;
      const axes = given.map((axis) => axisOf(axis, rank));
      if (new Set(axes).size < axes.length) throw new RangeError(`axes [${given}] name one twice`);
      const shape: Dim[] = [...x.type.shape];
      for (const axis of axes.toSorted((a, b) => a - b)) shape.splice(axis, 0, 1);
      return view(call, x, shape);
    },
  }),
];
