// Normalisations by given or measured means and variances. float32 rows with weights of their width go
// to the ops with kernels; half precision is computed in float32 and rounded once, as `stash_type` 1
// asks for.

import { equal, product } from "../../graph/dim/mod.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import {
  flag,
  float,
  int,
  ints,
  type OnnxAttributesOf,
  required,
} from "../derivation/attributes.ts";
import { applyBinary, applyUnary, castTo, type Translating } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";

const consumed = { consumed_inputs: ints(undefined, { until: 5 }) };

/** Attributes of norms of rows. */
export const rowNormAttributes = { axis: int(-1), epsilon: float(1e-5), stash_type: int(1) };

// Mean and biased variance along axes, dims kept, of x's element type.
function momentsOf(call: Translating, x: Tensor, axes: readonly number[]) {
  const along = { kind: "mean", axes, keep: true };
  const mean = call.one("reduce", [x], along);
  const centred = applyBinary(call, { kind: "sub", a: x, b: mean });
  const variance = call.one(
    "reduce",
    [applyBinary(call, { kind: "mul", a: centred, b: centred })],
    along,
  );
  return { mean, variance, centred };
}

/** How rows, the dims from `axis` on, are normalised, scaled and moved. */
export interface RowNorm {
  /** A layer norm; else an RMS norm. */
  readonly centred: boolean;
  readonly axis: number;
  readonly epsilon: number;
  readonly scale: Tensor | undefined;
  readonly bias?: Tensor | undefined;
}

/**
 * A layer or RMS norm from an axis on, with scale and bias. The kernels' op takes vectors of the width
 * of a row; scales of another shape are applied after it.
 */
export function normalizeRows(
  call: Translating,
  { x, norm }: { readonly x: Tensor; readonly norm: RowNorm },
): Tensor {
  const { centred, axis, epsilon, scale, bias } = norm;
  const { dtype, shape } = x.type;
  if (dtype === "f64") return normalizeDoubles(call, x, norm);
  const width = product(shape.slice(axis)), last = axis === shape.length - 1;
  const rows = last
    ? x
    : call.one("reshape", [x], { shape: [product(shape.slice(0, axis)), width] });
  const fits = (vector: Tensor | undefined) =>
    !vector || (vector.type.shape.length === shape.length - axis &&
      vector.type.shape.every((dim, i) => equal(dim, shape[axis + i]!)));
  // In half precision the scale is applied to the rounded rows.
  const fused = dtype === "f32" && fits(scale) && fits(bias);
  const vector = (given: Tensor | undefined) => {
    if (!given || !fused) return undefined;
    const f32 = castTo(call, { x: given, to: "f32" });
    return last ? f32 : call.one("reshape", [f32], { shape: [width] });
  };
  // Kernels add a bias to centred rows only.
  const vectors = centred ? [vector(scale), vector(bias)] : [vector(scale)];
  const normal = call.one("norm", [castTo(call, { x: rows, to: "f32" }), ...vectors], {
    centred,
    epsilon,
  });
  const rounded = castTo(call, { x: normal, to: dtype });
  const shaped = last ? rounded : call.one("reshape", [rounded], { shape });
  if (!fused) return scaleAndMove(call, shaped, norm);
  return !centred && bias ? applyBinary(call, { kind: "add", a: shaped, b: bias }) : shaped;
}

function scaleAndMove(call: Translating, x: Tensor, { scale, bias }: RowNorm): Tensor {
  const { dtype } = x.type;
  const scaled = scale
    ? applyBinary(call, { kind: "mul", a: x, b: castTo(call, { x: scale, to: dtype }) })
    : x;
  return bias
    ? applyBinary(call, { kind: "add", a: scaled, b: castTo(call, { x: bias, to: dtype }) })
    : scaled;
}

function normalizeDoubles(call: Translating, x: Tensor, norm: RowNorm): Tensor {
  const axes = x.type.shape.map((_, i) => i).slice(norm.axis);
  const around = norm.centred ? momentsOf(call, x, axes).centred : x;
  const inverse = inverseDeviation(call, around, { axes, epsilon: norm.epsilon });
  return scaleAndMove(call, applyBinary(call, { kind: "mul", a: around, b: inverse }), norm);
}

// 1 / sqrt(mean of squares + epsilon), dims kept.
function inverseDeviation(
  call: Translating,
  centred: Tensor,
  { axes, epsilon }: { readonly axes: readonly number[]; readonly epsilon: number },
): Tensor {
  const squares = applyBinary(call, { kind: "mul", a: centred, b: centred });
  const variance = call.one("reduce", [squares], { kind: "mean", axes, keep: true });
  const sum = applyBinary(call, {
    kind: "add",
    a: variance,
    b: call.scalar(variance.type.dtype, epsilon),
  });
  return applyUnary(call, { kind: "reciprocal", x: applyUnary(call, { kind: "sqrt", x: sum }) });
}

type RowNormCall = OnnxCall<OnnxAttributesOf<typeof rowNormAttributes>>;

/** LayerNormalization: y, and the mean and inverse deviation of each row where they are asked for. */
export function layerNorm(call: RowNormCall): (Tensor | undefined)[] {
  const { axis: given, epsilon } = call.attributes;
  const [x, scale, bias] = call.take(2, 1), axis = axisOf(given, x!.type.shape.length);
  const y = normalizeRows(call, { x: x!, norm: { centred: true, axis, epsilon, scale, bias } });
  if (!call.wanted[1] && !call.wanted[2]) return [y];
  const axes = x!.type.shape.map((_, i) => i).slice(axis);
  const wide = x!.type.dtype === "f64" ? x! : castTo(call, { x: x!, to: "f32" });
  const { mean, centred } = momentsOf(call, wide, axes);
  const deviation = inverseDeviation(call, centred, { axes, epsilon });
  return [y, castTo(call, { x: mean, to: "f32" }), castTo(call, { x: deviation, to: "f32" })];
}

/** RMSNormalization, of one output. */
export function rmsNorm(call: RowNormCall): Tensor[] {
  const { axis: given, epsilon } = call.attributes;
  const x = call.input(0), axis = axisOf(given, x.type.shape.length);
  return [
    normalizeRows(call, { x, norm: { centred: false, axis, epsilon, scale: call.input(1) } }),
  ];
}

/** Normalisations. */
export const normalizationOps: readonly OnnxOp[] = [
  onnxOp("BatchNormalization", {
    versions: [1, 6, 7, 9, 14],
    attributes: {
      ...consumed,
      epsilon: float(1e-5),
      is_test: int(0, { until: 6 }),
      momentum: float(0.9),
      spatial: int(1, { until: 8 }),
      training_mode: flag(false, { since: 14 }),
    },
    build(call) {
      const { epsilon, momentum, spatial, training_mode } = call.attributes;
      const [x, weight, bias, mean, variance] = call.take(5);
      if (!spatial) call.unsupported("statistics of single elements (spatial = 0)");
      if (!training_mode) {
        if (call.wanted.slice(1).includes(true)) call.unsupported("statistics of a batch");
        return call.op("batch_norm", [x, weight, bias, mean, variance], { epsilon });
      }
      const { shape } = x!.type, axes = shape.map((_, axis) => axis).filter((axis) => axis !== 1);
      const moments = momentsOf(call, castTo(call, { x: x!, to: "f32" }), axes);
      const [newMean, newVariance] = [moments.mean, moments.variance].map((kept) =>
        call.one("reshape", [kept], { shape: [shape[1]!] })
      );
      const y = call.one("batch_norm", [x, weight, bias, newMean, newVariance], { epsilon });
      const running = (before: Tensor, now: Tensor) => {
        const { dtype } = before.type, fresh = castTo(call, { x: now, to: dtype });
        const part = (x: Tensor, of: number) =>
          applyBinary(call, { kind: "mul", a: x, b: call.scalar(dtype, of) });
        return applyBinary(call, {
          kind: "add",
          a: part(before, momentum),
          b: part(fresh, 1 - momentum),
        });
      };
      return [y, running(mean!, newMean!), running(variance!, newVariance!)];
    },
  }),
  /** Version 18 scaled by group, 21 scales by channel. */
  onnxOp("GroupNormalization", {
    versions: [18, 21],
    attributes: {
      epsilon: float(1e-5),
      num_groups: required(int()),
      stash_type: int(1, { since: 21 }),
    },
    build(call) {
      const { num_groups: groups, epsilon } = call.attributes;
      const x = call.input(0), channels = x.type.shape[1]!;
      const perChannel = (index: number) => {
        const vector = call.input(index);
        if (call.version >= 21 || equal(channels, groups)) return vector;
        if (typeof channels !== "number") throw new RangeError("the channels must be known");
        const column = call.one("reshape", [vector], { shape: [groups, 1] });
        const wide = call.one("expand", [column], { shape: [groups, channels / groups] });
        return call.one("reshape", [wide], { shape: [channels] });
      };
      return call.op("group_norm", [x, perChannel(1), perChannel(2)], { groups, epsilon });
    },
  }),
  onnxOp("InstanceNormalization", {
    versions: [1, 6],
    attributes: { ...consumed, epsilon: float(1e-5) },
    build: (call) =>
      call.op("group_norm", call.take(3), { groups: 0, epsilon: call.attributes.epsilon }),
  }),
  onnxOp("LayerNormalization", {
    versions: [17],
    attributes: rowNormAttributes,
    build: layerNorm,
  }),
  onnxOp("LpNormalization", {
    versions: [1],
    attributes: { axis: int(-1), p: int(2) },
    build: (call) => call.op("lp_normalize", [call.input(0)], call.attributes),
  }),
  onnxOp("LRN", {
    versions: [1],
    attributes: { alpha: float(1e-4), beta: float(0.75), bias: float(1), size: required(int()) },
    build: (call) => call.op("local_response_norm", [call.input(0)], call.attributes),
  }),
  /** (x - mean) / (deviation + 1e-9). */
  onnxOp("MeanVarianceNormalization", {
    versions: [9],
    attributes: { axes: ints([0, 2, 3]) },
    build(call) {
      const x = call.input(0), { dtype } = x.type;
      const { centred, variance } = momentsOf(call, x, call.attributes.axes);
      const deviation = applyUnary(call, { kind: "sqrt", x: variance });
      const least = applyBinary(call, { kind: "add", a: deviation, b: call.scalar(dtype, 1e-9) });
      return [applyBinary(call, { kind: "div", a: centred, b: least })];
    },
  }),
  onnxOp("RMSNormalization", {
    versions: [23],
    attributes: rowNormAttributes,
    build: rmsNorm,
  }),
];
