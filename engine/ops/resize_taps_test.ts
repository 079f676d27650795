// Taps of resizing, against the reference implementation of onnx 1.22.0 (opset 19).

import { assertAlmostEquals, assertEquals } from "@std/assert";
import { type AxisOptions, axisTaps } from "./resize_taps.ts";

const X = [1, 4, 2, 8, 5, 7];

const DEFAULTS: AxisOptions = {
  scale: NaN,
  mode: "linear",
  coordinates: "half_pixel",
  rounding: "round_prefer_floor",
  cubic_a: -0.75,
  exclude_outside: false,
  antialias: false,
  roi: [0, 1],
};

/** Options, and the six numbers resized by a scale, or to as many as there are. */
const CASES: readonly (readonly [options: Partial<AxisOptions>, wanted: readonly number[]])[] = [
  [
    { coordinates: "half_pixel_symmetric", scale: 1.3 },
    [1.576923, 3.884615, 2.538462, 5.0, 7.192307, 5.076923, 6.615385],
  ],
  [
    { coordinates: "half_pixel_symmetric", scale: 0.7 },
    [2.071429, 2.428571, 7.357143, 6.285714],
  ],
  [
    { coordinates: "half_pixel_symmetric", scale: 0.7, mode: "cubic" },
    [2.145225, 1.866346, 7.970479, 6.134017],
  ],
  [
    { mode: "cubic" },
    [0.712, 2.307999, 4.0, 2.343999, 2.936002, 7.184001, 7.339998, 5.0, 6.007998, 7.192002],
  ],
  [
    { mode: "cubic", exclude_outside: true },
    [0.650486, 2.180505, 4.0, 2.344, 2.936001, 7.183999, 7.34, 5.0, 6.104693, 7.23301],
  ],
  [
    { coordinates: "align_corners" },
    [1.0, 2.666667, 3.777778, 2.666667, 3.333333, 6.666667, 7.0, 5.333333, 5.888889, 7.0],
  ],
  [{ mode: "nearest", rounding: "round_prefer_ceil" }, [4, 8, 7]],
  [{ mode: "nearest", rounding: "round_prefer_floor" }, [1, 2, 5]],
  [{ mode: "nearest", rounding: "floor", coordinates: "asymmetric" }, [1, 1, 4, 2, 2, 8, 5, 5, 7]],
  [{ mode: "nearest", rounding: "ceil", coordinates: "asymmetric" }, [1, 4, 2, 2, 8, 5, 5, 7, 7]],
  [{ coordinates: "pytorch_half_pixel" }, [1]],
];

Deno.test("six numbers are resized as the rules of ONNX say", () => {
  for (const [options, wanted] of CASES) {
    const scale = options.scale ?? wanted.length / X.length;
    const taps = axisTaps(X.length, wanted.length, { ...DEFAULTS, ...options, scale });
    assertEquals(taps.length, wanted.length);
    wanted.forEach((value, i) => {
      const got = taps[i]!.reduce((sum, { index, weight }) => sum + weight * X[index]!, 0);
      assertAlmostEquals(got, value, 1e-5, `${JSON.stringify(options)}, place ${i}`);
    });
  }
});
