// Ops that cut tensors and put them together: Slice, Split, Concat, Pad. Sizes that older versions had as
// attributes are inputs now; both end as dims. Clamping to the tensor happens here, where the bounds of
// symbols often make it needless.

import {
  add,
  ceilDiv,
  compare,
  type Dim,
  exactDiv,
  formatDim,
  max,
  min,
  sub,
} from "../../graph/dim/mod.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { float, int, ints, text } from "../derivation/attributes.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";

/** What exporters write for "to the end": the largest int32 and more. */
const END = 2 ** 31 - 1;

interface Cut {
  readonly start: Dim;
  readonly size: Dim;
  readonly step: number;
}

/** Elements of an integer input as dims; what is beyond 2^53 is as good as 2^53. */
function positions(call: OnnxCall<unknown>, index: number): readonly Dim[] {
  const { known } = call.input(index);
  if (!known) return call.dims(index);
  const most = Number.MAX_SAFE_INTEGER;
  return Array.from(
    known.data as ArrayLike<number | bigint>,
    (value) => Math.max(-most, Math.min(most, Number(value))),
  );
}

/** A slice along one dim, counted from the front and clamped to it. */
export function cutOf(
  dim: Dim,
  { start, end, step }: { readonly start: Dim; readonly end: Dim; readonly step: number },
): Cut {
  if (step > 0) {
    const first = clamped(dim, { at: start, low: 0, high: dim }),
      last = clamped(dim, { at: end, low: 0, high: dim });
    return { start: first, size: max(ceilDiv(sub(last, first), step), 0), step };
  }
  const top = sub(dim, 1);
  const first = clamped(dim, { at: start, low: 0, high: top }),
    last = clamped(dim, { at: end, low: -1, high: top });
  return { start: first, size: max(ceilDiv(sub(first, last), -step), 0), step };
}

function clamped(
  dim: Dim,
  { at, low, high }: { readonly at: Dim; readonly low: Dim; readonly high: Dim },
): Dim {
  if (typeof at === "number" && typeof dim !== "number") {
    if (at >= END) return high;
    if (at <= -END) return low;
  }
  const sign = compare(at, 0);
  if (sign === "unknown" || sign === "<=") {
    throw new RangeError(`whether ${formatDim(at)} counts from the end depends on the bindings`);
  }
  const place = sign === "<" ? add(dim, at) : at;
  // The upper bound counts more: of a dim that may be empty it is below the lower one.
  return [">", ">=", "=="].includes(compare(place, high)) ? high : min(high, max(low, place));
}

/** The box of `cuts`, by axis, of a tensor. */
export function sliced(
  call: OnnxCall<unknown>,
  { x, cuts }: { readonly x: Tensor; readonly cuts: ReadonlyMap<number, Cut> },
): Tensor {
  const all = x.type.shape.map((size, axis): Cut => cuts.get(axis) ?? { start: 0, size, step: 1 });
  if (all.every((cut, axis) => isWhole(cut, x.type.shape[axis]!))) return x;
  return call.one("slice", [x], {
    starts: all.map(({ start }) => start),
    sizes: all.map(({ size }) => size),
    steps: all.map(({ step }) => step),
  });
}

function isWhole({ start, size, step }: Cut, dim: Dim): boolean {
  return step === 1 && start === 0 && compare(size, dim) === "==";
}

/** The first sizes of so many parts; `uneven` (from version 18 on): the last may be smaller. */
function parts(
  dim: Dim,
  { count, wanted, uneven }: {
    readonly count: number;
    readonly wanted: number;
    readonly uneven: boolean;
  },
): Dim[] {
  const size = exactDiv(dim, count);
  if (size !== undefined) return Array<Dim>(wanted).fill(size);
  if (!uneven || typeof dim !== "number") {
    throw new RangeError(`${formatDim(dim)} must be a multiple of ${count}`);
  }
  const most = Math.ceil(dim / count);
  return Array.from({ length: wanted }, (_, i) => Math.max(0, Math.min(most, dim - i * most)));
}

/** Ops that cut and join. */
export const slicingOps: readonly OnnxOp[] = [
  onnxOp("Concat", {
    versions: [1, 4],
    moves: true,
    attributes: { axis: int() },
    build(call) {
      const { axis = call.version < 4 ? 1 : undefined } = call.attributes;
      if (axis === undefined) throw new TypeError('attribute "axis" is missing');
      const inputs = call.inputs.map((_, index) => call.input(index));
      return inputs.length === 1 ? [inputs[0]] : call.op("concat", inputs, { axis });
    },
  }),
  onnxOp("Pad", {
    versions: [1, 2, 11, 18, 19],
    attributes: {
      mode: text("constant", { choices: ["constant", "reflect", "edge", "wrap"] }),
      paddings: ints(undefined, { until: 1 }),
      pads: ints(undefined, { since: 2, until: 10 }),
      value: float(0, { until: 10 }),
    },
    build(call) {
      const x = call.input(0);
      const { shape } = x.type;
      const { mode, paddings, pads = paddings, value } = call.attributes;
      const margins = call.version < 11 ? pads : call.dims(1);
      if (!margins) throw new TypeError("pads are missing");
      const axes = (call.inputs[3] ? call.numbers(3) : shape.map((_, axis) => axis))
        .map((axis) => axisOf(axis, shape.length));
      if (margins.length !== 2 * axes.length) {
        throw new RangeError(
          `${margins.length} pads for ${axes.length} dims: must be twice as many`,
        );
      }
      const along = (first: number) =>
        shape.map((_, axis): Dim => {
          const at = axes.indexOf(axis);
          return at < 0 ? 0 : margins[first + at]!;
        });
      const filling = call.version < 11
        ? value === 0 ? undefined : call.scalar(x.type.dtype, value)
        : call.inputs[2];
      const constant = mode === "constant" ? filling : undefined;
      return call.op("pad", constant ? [x, constant] : [x], {
        before: along(0),
        after: along(axes.length),
        mode,
      });
    },
  }),
  onnxOp("Slice", {
    versions: [1, 10],
    moves: true,
    attributes: {
      starts: ints(undefined, { until: 9 }),
      ends: ints(undefined, { until: 9 }),
      axes: ints(undefined, { until: 9 }),
    },
    build(call) {
      const x = call.input(0);
      const { shape } = x.type;
      const given = call.attributes;
      const starts = call.version < 10 ? given.starts : positions(call, 1);
      const ends = call.version < 10 ? given.ends : positions(call, 2);
      if (!starts || !ends) throw new TypeError("starts or ends are missing");
      const axes = (call.inputs[3] ? call.numbers(3) : given.axes) ?? starts.map((_, i) => i);
      const steps = call.inputs[4] ? call.numbers(4) : starts.map(() => 1);
      if (steps.includes(0)) throw new RangeError("a step is 0: must not be");
      const cuts = new Map<number, Cut>();
      for (const [i, given] of axes.entries()) {
        const axis = axisOf(given, shape.length);
        cuts.set(axis, cutOf(shape[axis]!, { start: starts[i]!, end: ends[i]!, step: steps[i]! }));
      }
      return [sliced(call, { x, cuts })];
    },
  }),
  onnxOp("Split", {
    versions: [1, 2, 13, 18],
    moves: true,
    attributes: {
      axis: int(0),
      split: ints(undefined, { until: 12 }),
      num_outputs: int(undefined, { since: 18 }),
    },
    build(call) {
      const x = call.input(0);
      const axis = axisOf(call.attributes.axis, x.type.shape.length);
      const given = call.inputs[1] ? call.dims(1) : call.attributes.split;
      const wanted = call.wanted.length, count = call.attributes.num_outputs ?? wanted;
      if (count < wanted) throw new RangeError(`${count} parts for ${wanted} outputs`);
      const sizes = given ??
        parts(x.type.shape[axis]!, { count, wanted, uneven: call.version >= 18 });
      if (sizes.length < call.wanted.length) {
        throw new RangeError(`${sizes.length} parts for ${call.wanted.length} outputs`);
      }
      let start: Dim = 0;
      return call.wanted.map((wanted, i) => {
        const cut: Cut = { start, size: sizes[i]!, step: 1 };
        start = add(start, cut.size);
        return wanted ? sliced(call, { x, cuts: new Map([[axis, cut]]) }) : undefined;
      });
    },
  }),
];
