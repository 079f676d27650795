// grid_sample: elements of a plane or volume read at coordinates that are given for each place of the
// output. Coordinates run from -1 to 1, the last axis first. Beyond the edge there are zeros, the edge
// itself, or the mirrored inside.

import { choice, flag } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS, numbersOf, storeNumbers, stridesOf } from "../host_numbers.ts";
import { elementCount } from "../host_tensor.ts";
import { roundToEven } from "../../../functions/special.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireEqual, requireInput } from "../shape_rules.ts";

/** What is beyond the edge. */
const PADDING_MODES = ["zeros", "border", "reflection"] as const;

/** (x [N, C, …d dims], grid [N, …d dims, d]) → [N, C, …]. */
export const gridSample: OpRecord = defineOp({
  name: "grid_sample",
  summary: "elements read at given coordinates",
  attributes: {
    mode: choice(["nearest", "linear", "cubic"]),
    padding: choice(PADDING_MODES),
    /** -1 and 1 are the centres of the outermost elements, not their outer edges. */
    align_corners: flag(),
  },
  infer(inputs) {
    checkInputCount(inputs, 2);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 3 });
    const rank = x.shape.length;
    const grid = requireInput(inputs, { index: 1, name: "grid", dtype: FLOATS, rank });
    requireEqual(grid.shape.at(-1)!, { b: rank - 2, what: "the coordinates and the spatial dims" });
    requireEqual(grid.shape[0]!, { b: x.shape[0]!, what: "the batches of x and grid" });
    return [{ dtype: x.dtype, shape: [...x.shape.slice(0, 2), ...grid.shape.slice(1, -1)] }];
  },
  reference({ inputs: [x, grid], outputs: [out], attributes }) {
    const [batch, channels, ...sizes] = x!.shape as [number, number, ...number[]];
    const inside = elementCount(sizes), outside = elementCount(out!.shape.slice(2));
    const values = numbersOf(x!), coordinates = numbersOf(grid!), dims = sizes.length;
    const strides = stridesOf(sizes), y = new Float64Array(out!.data.length);
    for (let n = 0; n < batch; n++) {
      for (let place = 0; place < outside; place++) {
        let taps: readonly Tap[] = [{ index: 0, weight: 1 }];
        sizes.forEach((size, axis) => {
          const at = coordinates[(n * outside + place) * dims + dims - 1 - axis]!;
          const own = axisTaps(at, size, attributes);
          taps = taps.flatMap(({ index, weight }) =>
            own.map((tap) => ({
              index: index + tap.index * strides[axis]!,
              weight: weight * tap.weight,
            }))
          );
        });
        for (let c = 0; c < channels; c++) {
          let sum = 0;
          for (const { index, weight } of taps) {
            sum += weight * values[(n * channels + c) * inside + index]!;
          }
          y[(n * channels + c) * outside + place] = sum;
        }
      }
    }
    storeNumbers(out!, y);
  },
  cases: (random) =>
    (["nearest", "linear", "cubic"] as const).flatMap((mode) =>
      PADDING_MODES.map((padding, i) => ({
        inputs: [random.input([1, 2, 5, 7]), random.input([1, 3, 4, 2])],
        attributes: { mode, padding, align_corners: i % 2 === 0 },
      }))
    ),
});

interface Tap {
  readonly index: number;
  readonly weight: number;
}

interface Options {
  readonly mode: "nearest" | "linear" | "cubic";
  readonly padding: typeof PADDING_MODES[number];
  readonly align_corners: boolean;
}

// The elements of one axis that make a coordinate, those beyond the edge left out or moved inside.
function axisTaps(coordinate: number, size: number, options: Options): Tap[] {
  const { mode, align_corners } = options;
  // Float32, as everybody computes it: nearest depends on halves.
  let x = Math.fround(
    align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2,
  );
  if (mode === "nearest") x = roundToEven(x);
  x = moved(x, size, options);
  const left = Math.floor(x), rest = x - left;
  const weights = mode === "nearest"
    ? [{ index: left, weight: 1 }]
    : mode === "linear"
    ? [{ index: left, weight: 1 - rest }, { index: left + 1, weight: rest }]
    : cubicWeights(rest).map((weight, i) => ({ index: left - 1 + i, weight }));
  return weights.flatMap(({ index, weight }) => {
    const at = Math.trunc(moved(index, size, options));
    return at >= 0 && at < size ? [{ index: at, weight }] : [];
  });
}

/** A coordinate moved inside as the padding says; zeros leave it where it is. */
function moved(x: number, size: number, { padding, align_corners }: Options): number {
  const least = align_corners ? 0 : -0.5, most = align_corners ? size - 1 : size - 0.5;
  if (padding === "border") return Math.min(size - 1, Math.max(0, x));
  if (padding === "zeros" || (x >= least && x <= most)) return x;
  const range = most - least;
  if (range === 0) return least;
  const beyond = x < least ? least - x : x - most;
  const turns = Math.floor(beyond / range), rest = beyond - turns * range;
  return (turns % 2 === 0) === (x < least) ? least + rest : most - rest;
}

/** Keys' kernel with a = -0.75 at four neighbours. */
function cubicWeights(rest: number): number[] {
  const a = -0.75;
  const near = (x: number) => ((a + 2) * x - (a + 3)) * x * x + 1;
  const far = (x: number) => ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return [far(1 + rest), near(rest), near(1 - rest), far(2 - rest)];
}
