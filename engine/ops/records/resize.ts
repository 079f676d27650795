// resize: interpolation along every axis in turn, since all of its kinds are separable. A place of the
// output maps to a coordinate of the input; a kernel (nearest, linear, cubic) weighs the elements
// around it. With `antialias` the kernel is widened by the scale when shrinking.
//
// Coordinates and kernels: ONNX operator Resize-19; the cubic kernel: Keys 1981.

import { choice, dims, flag, number, numbers } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { formatDim } from "../../graph/dim/mod.ts";
import type { Attributes, DataType } from "../../graph/graph.ts";
import { BYTES, FLOATS, numbersOf } from "../host_numbers.ts";
import { elementCount, type HostTensor, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseDraft, CaseRandom } from "../op_case.ts";
import { axisTaps, COORDINATES, INTERPOLATIONS, ROUNDINGS } from "../resize_taps.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

const ELEMENTS: readonly DataType[] = [...FLOATS, ...BYTES, "i32", "i64", "i16", "u16", "bool"];

/** (x […]) → [sizes]. */
export const resize: OpRecord = defineOp({
  name: "resize",
  summary: "interpolation to another size",
  attributes: {
    sizes: dims(),
    /** One an axis; empty: the ratios of the sizes. */
    scales: numbers([]),
    mode: choice(INTERPOLATIONS),
    coordinates: choice(COORDINATES, "half_pixel"),
    /** For nearest. */
    rounding: choice(ROUNDINGS, "round_prefer_floor"),
    cubic_a: number(-0.75),
    /** Elements beyond the edge weigh nothing, instead of repeating the edge. */
    exclude_outside: flag(false),
    antialias: flag(false),
    /** Starts then ends, in parts of each axis; for crop_and_resize. */
    roi: numbers([]),
    /** Value beyond the input; for crop_and_resize. */
    extrapolation: number(0),
  },
  infer(inputs, { sizes, scales, roi }) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: ELEMENTS, minRank: 1 });
    const rank = x.shape.length;
    if (sizes.length !== rank) throw new RangeError(`sizes has ${sizes.length} entries, x ${rank}`);
    if (scales.length !== 0 && scales.length !== rank) {
      throw new RangeError(`scales has ${scales.length} entries: must have ${rank}`);
    }
    if (roi.length !== 0 && roi.length !== 2 * rank) {
      throw new RangeError(`roi has ${roi.length} entries: must have ${2 * rank}`);
    }
    x.shape.forEach((size, axis) => {
      if (size !== 0 || sizes[axis] === 0) return;
      throw new RangeError(`dim ${axis} is empty: cannot be resized to ${formatDim(sizes[axis]!)}`);
    });
    return [{ dtype: x.dtype, shape: [...sizes] }];
  },
  reference({ inputs: [x], outputs: [out], attributes }) {
    let values: ArrayLike<number> = numbersOf(x!);
    const shape = [...x!.shape], rank = shape.length;
    for (let axis = 0; axis < rank; axis++) {
      const from = shape[axis]!, to = out!.shape[axis]!;
      const scale = attributes.scales[axis] ?? to / from;
      if (from === to && scale === 1 && attributes.coordinates !== "crop_and_resize") continue;
      const roi = [attributes.roi[axis] ?? 0, attributes.roi[rank + axis] ?? 1] as const;
      const taps = axisTaps(from, to, { ...attributes, scale, roi });
      values = along(values, { shape, axis, taps, extrapolation: attributes.extrapolation });
      shape[axis] = to;
    }
    store(out!, values);
  },
  cases: resizeCases,
  tolerance: { ofLargest: 1e-4, reason: "coordinates in float32" },
});

function along(
  values: ArrayLike<number>,
  { shape, axis, taps, extrapolation }: {
    readonly shape: readonly number[];
    readonly axis: number;
    readonly taps: ReturnType<typeof axisTaps>;
    readonly extrapolation: number;
  },
): Float64Array {
  const from = shape[axis]!, to = taps.length;
  const outer = elementCount(shape.slice(0, axis)), inner = elementCount(shape.slice(axis + 1));
  const result = new Float64Array(outer * to * inner);
  for (let o = 0; o < outer; o++) {
    taps.forEach((tap, place) => {
      const target = (o * to + place) * inner;
      if (!tap) {
        result.fill(extrapolation, target, target + inner);
        return;
      }
      for (const { index, weight } of tap) {
        // Nothing of an infinite element is nothing.
        if (weight === 0) continue;
        const source = (o * from + index) * inner;
        for (let i = 0; i < inner; i++) result[target + i]! += weight * values[source + i]!;
      }
    });
  }
  return result;
}

// Integers are rounded to nearest and kept within their type: a cubic kernel overshoots.
function store(out: HostTensor, values: ArrayLike<number>): void {
  const range = RANGES[out.dtype];
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    setElement(out, {
      index: i,
      value: range ? Math.min(range[1], Math.max(range[0], Math.trunc(value))) : value,
    });
  }
}

const RANGES: Partial<Record<DataType, readonly [number, number]>> = {
  i8: [-128, 127],
  u8: [0, 255],
  i16: [-32768, 32767],
  u16: [0, 65535],
  i32: [-(2 ** 31), 2 ** 31 - 1],
  i64: [-(2 ** 53) + 1, 2 ** 53 - 1],
  bool: [0, 1],
};

function resizeCases(random: CaseRandom): CaseDraft[] {
  const shapes = [[[1, 2, 5, 7], [1, 2, 10, 14]], [[1, 3, 9, 8], [1, 3, 4, 5]]] as const;
  // Sizes that are cut off, where the rules differ most.
  const x = [1, 2, 8, 9], scales = [1, 1, 1.25, 0.6875];
  const scaled = { sizes: [1, 2, 10, 6], scales };
  const ways: Attributes[] = [
    ...ROUNDINGS.flatMap((rounding): Attributes[] => [
      // Coordinates in the middle of two elements: half_pixel at half the size, asymmetric at twice.
      { sizes: [1, 2, 4, 6], mode: "nearest", rounding },
      { sizes: [1, 2, 16, 6], mode: "nearest", rounding, coordinates: "asymmetric" },
    ]),
    ...COORDINATES.flatMap((coordinates) =>
      INTERPOLATIONS.map((mode) => ({ ...scaled, mode, coordinates }))
    ),
    ...COORDINATES.map((coordinates) => ({ sizes: [1, 2, 1, 9], mode: "linear", coordinates })),
    ...(["linear", "cubic"] as const).flatMap((mode): Attributes[] => [
      { ...scaled, mode, exclude_outside: true },
      { ...scaled, mode, antialias: true },
    ]),
    { ...scaled, mode: "cubic", cubic_a: -0.5 },
    { sizes: [1, 2, 24, 9], mode: "nearest", rounding: "floor", coordinates: "asymmetric" },
    { sizes: [1, 2, 16, 36], mode: "nearest", rounding: "floor", coordinates: "asymmetric" },
    {
      ...{ sizes: [1, 2, 5, 6], mode: "linear", coordinates: "crop_and_resize" },
      ...{ roi: [0, 0, -0.25, 0.5, 1, 1, 0.75, 1.5], extrapolation: 3 },
    },
  ];
  return [
    ...shapes.flatMap(([from, to]) =>
      INTERPOLATIONS.flatMap((mode) =>
        (["half_pixel", "align_corners", "asymmetric"] as const).map((coordinates) => ({
          inputs: [random.input(from)],
          attributes: { sizes: to, mode, coordinates },
        }))
      )
    ),
    ...ways.map((attributes) => ({ inputs: [random.input(x)], attributes })),
  ];
}
