// Normalisations by given or measured means and variances. float32 rows with weights of their width go
// to the ops with kernels; half precision is computed in float32 and rounded once, as `stash_type` 1
// asks for.

import { equal, product } from "../../graph/dim/mod.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { float, int, ints, required } from "../derivation/attributes.ts";
import { applyBinary, applyUnary, castTo, type Translating } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";

const consumed = { consumed_inputs: ints(undefined, { until: 5 }) };

// Mean and biased variance along axes, of x's element type.
function momentsOf(
  call: Translating,
  x: Tensor,
  axes: readonly number[],
  keep: boolean,
): { readonly mean: Tensor; readonly variance: Tensor; readonly centred: Tensor } {
  const mean = call.one("reduce", [x], { kind: "mean", axes, keep: true });
  const centred = applyBinary(call, "sub", x, mean);
  const squares = applyBinary(call, "mul", centred, centred);
  const variance = call.one("reduce", [squares], { kind: "mean", axes, keep });
  const flat = keep ? mean : call.one("reduce", [x], { kind: "mean", axes, keep: false });
  return { mean: flat, variance, centred };
}

/** x normalised over its dims from `axis` on, before scale and bias. */
interface RowNorm {
  readonly op: "layer_norm" | "rms_norm";
  readonly axis: number;
  readonly epsilon: number;
}

/**
 * A layer or RMS norm from an axis on, with scale and bias. The kernels' op takes vectors of the width
 * of a row; scales of another shape are applied after it.
 */
export function normalizeRows(
  call: Translating,
  x: Tensor,
  { op, axis, epsilon }: RowNorm,
  scale: Tensor | undefined,
  bias: Tensor | undefined,
): Tensor {
  const { dtype, shape } = x.type;
  if (dtype === "f64") return normalizeDoubles(call, x, { op, axis, epsilon }, scale, bias);
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
    const f32 = castTo(call, given, "f32");
    return last ? f32 : call.one("reshape", [f32], { shape: [width] });
  };
  const inputs = op === "layer_norm"
    ? [castTo(call, rows, "f32"), vector(scale), vector(bias)]
    : [castTo(call, rows, "f32"), vector(scale)];
  const normal = castTo(call, call.one(op, inputs, { epsilon }), dtype);
  const shaped = last ? normal : call.one("reshape", [normal], { shape });
  if (!fused) return scaleAndMove(call, shaped, scale, bias);
  return op === "rms_norm" && bias ? applyBinary(call, "add", shaped, bias) : shaped;
}

function scaleAndMove(
  call: Translating,
  x: Tensor,
  scale: Tensor | undefined,
  bias: Tensor | undefined,
): Tensor {
  const { dtype } = x.type;
  const scaled = scale ? applyBinary(call, "mul", x, castTo(call, scale, dtype)) : x;
  return bias ? applyBinary(call, "add", scaled, castTo(call, bias, dtype)) : scaled;
}

function normalizeDoubles(
  call: Translating,
  x: Tensor,
  { op, axis, epsilon }: RowNorm,
  scale: Tensor | undefined,
  bias: Tensor | undefined,
): Tensor {
  const axes = x.type.shape.map((_, i) => i).slice(axis);
  const { centred } = op === "layer_norm" ? momentsOf(call, x, axes, true) : { centred: x };
  const inverse = inverseDeviation(call, centred, axes, epsilon);
  return scaleAndMove(call, applyBinary(call, "mul", centred, inverse), scale, bias);
}

// 1 / sqrt(mean of squares + epsilon), dims kept.
function inverseDeviation(
  call: Translating,
  centred: Tensor,
  axes: readonly number[],
  epsilon: number,
): Tensor {
  const squares = applyBinary(call, "mul", centred, centred);
  const variance = call.one("reduce", [squares], { kind: "mean", axes, keep: true });
  const sum = applyBinary(call, "add", variance, call.scalar(variance.type.dtype, epsilon));
  return applyUnary(call, "reciprocal", applyUnary(call, "sqrt", sum));
}

/** Y, and the mean and inverse deviation of each row where they are asked for. */
export function layerNormWithStatistics(
  call: OnnxCall<{ readonly axis?: number; readonly epsilon: number }>,
  bias: Tensor | undefined,
): (Tensor | undefined)[] {
  const { axis: given = -1, epsilon } = call.attributes;
  const x = call.input(0), axis = axisOf(given, x.type.shape.length);
  const y = normalizeRows(call, x, { op: "layer_norm", axis, epsilon }, call.input(1), bias);
  if (!call.wanted[1] && !call.wanted[2]) return [y];
  const axes = x.type.shape.map((_, i) => i).slice(axis);
  const wide = x.type.dtype === "f64" ? x : castTo(call, x, "f32");
  const { mean, centred } = momentsOf(call, wide, axes, true);
  const deviation = inverseDeviation(call, centred, axes, epsilon);
  return [y, castTo(call, mean, "f32"), castTo(call, deviation, "f32")];
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
      training_mode: int(0, { since: 14 }),
    },
    build(call) {
      const { epsilon, momentum, spatial, training_mode } = call.attributes;
      const [x, weight, bias, mean, variance] = [0, 1, 2, 3, 4].map((i) => call.input(i)) as [
        Tensor,
        Tensor,
        Tensor,
        Tensor,
        Tensor,
      ];
      if (!spatial) call.unsupported("statistics of single elements (spatial = 0)");
      if (!training_mode) {
        if (call.wanted.slice(1).includes(true)) call.unsupported("statistics of a batch");
        return [call.one("batch_norm", [x, weight, bias, mean, variance], { epsilon })];
      }
      const axes = x.type.shape.map((_, axis) => axis).filter((axis) => axis !== 1);
      const moments = momentsOf(call, castTo(call, x, "f32"), axes, false);
      const y = call.one("batch_norm", [x, weight, bias, moments.mean, moments.variance], {
        epsilon,
      });
      const running = (before: Tensor, now: Tensor) => {
        const { dtype } = before.type;
        const kept = applyBinary(call, "mul", before, call.scalar(dtype, momentum));
        const fresh = applyBinary(
          call,
          "mul",
          castTo(call, now, dtype),
          call.scalar(dtype, 1 - momentum),
        );
        return applyBinary(call, "add", kept, fresh);
      };
      return [y, running(mean, moments.mean), running(variance, moments.variance)];
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
      call.op("group_norm", [0, 1, 2].map((i) => call.input(i)), {
        groups: 0,
        epsilon: call.attributes.epsilon,
      }),
  }),
  onnxOp("LayerNormalization", {
    versions: [17],
    attributes: { axis: int(-1), epsilon: float(1e-5), stash_type: int(1) },
    build: (call) => layerNormWithStatistics(call, call.inputs[2]),
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
      const { centred, variance } = momentsOf(call, x, call.attributes.axes, true);
      const deviation = applyUnary(call, "sqrt", variance);
      const least = applyBinary(call, "add", deviation, call.scalar(dtype, 1e-9));
      return [applyBinary(call, "div", centred, least)];
    },
  }),
  onnxOp("RMSNormalization", {
    versions: [23],
    attributes: { axis: int(-1), epsilon: float(1e-5), stash_type: int(1) },
    build(call) {
      const x = call.input(0), axis = axisOf(call.attributes.axis, x.type.shape.length);
      const norm = { op: "rms_norm", axis, epsilon: call.attributes.epsilon } as const;
      return [normalizeRows(call, x, norm, call.input(1), undefined)];
    },
  }),
];
