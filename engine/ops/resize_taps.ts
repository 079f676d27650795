// Which elements of an axis make a place of a resized one, and how much each weighs.

import { coordinateOf, nearestOf } from "../../wasm/assembly/network/resize_rules.ts";

/** Kernels. */
export const INTERPOLATIONS = ["nearest", "linear", "cubic"] as const;

/** How a place of the output maps to the input, in the order of their numbers in wasm/assembly/network/resize_rules.ts. */
export const COORDINATES = [
  "half_pixel",
  "half_pixel_symmetric",
  "pytorch_half_pixel",
  "align_corners",
  "asymmetric",
  "crop_and_resize",
] as const;

/** How a coordinate becomes the nearest index, in the order of their numbers there. */
export const ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"] as const;

/** How an axis is resized. */
export interface AxisOptions {
  readonly scale: number;
  readonly mode: typeof INTERPOLATIONS[number];
  readonly coordinates: typeof COORDINATES[number];
  readonly rounding: typeof ROUNDINGS[number];
  readonly cubic_a: number;
  readonly exclude_outside: boolean;
  readonly antialias: boolean;
  /** Start and end of what is cropped, in parts of the axis. */
  readonly roi: readonly [number, number];
}

/** One element and its weight. */
export interface Tap {
  readonly index: number;
  readonly weight: number;
}

/** The taps of each place; undefined where crop_and_resize leaves the input. */
export function axisTaps(
  from: number,
  to: number,
  options: AxisOptions,
): readonly (readonly Tap[] | undefined)[] {
  return Array.from({ length: to }, (_, place) => {
    const x = coordinate(place, from, to, options);
    const outside = x < 0 || x > from - 1;
    if (outside && options.coordinates === "crop_and_resize") return undefined;
    if (options.mode === "nearest") {
      const index = nearestOf(ROUNDINGS.indexOf(options.rounding), x);
      return [{ index: clamp(index, from), weight: 1 }];
    }
    return kernelTaps(x, from, options);
  });
}

function coordinate(place: number, from: number, to: number, options: AxisOptions): number {
  const { coordinates, scale, roi: [start, end] } = options;
  if (coordinates !== "crop_and_resize") {
    return coordinateOf(COORDINATES.indexOf(coordinates), place, from, to, scale);
  }
  const step = scale * from === 1 ? 0.5 : place / (scale * from - 1);
  return (start + step * (end - start)) * (from - 1);
}

function kernelTaps(x: number, from: number, options: AxisOptions): Tap[] {
  const narrow = options.antialias ? Math.min(options.scale, 1) : 1;
  const support = options.mode === "linear" ? 1 : 2;
  const first = Math.floor(-support / narrow) + 1, count = 2 - 2 * first;
  const left = Math.floor(x), rest = x - left;
  const taps = Array.from({ length: count }, (_, i) => {
    const distance = Math.abs(narrow * (first + i - rest));
    const weight = options.mode === "linear"
      ? Math.max(0, 1 - distance)
      : cubic(distance, options.cubic_a);
    const index = left + first + i;
    const counts = !options.exclude_outside || (index >= 0 && index < from);
    return { index: clamp(index, from), weight: counts ? weight : 0 };
  });
  if (!options.antialias && !options.exclude_outside) return taps;
  const total = taps.reduce((sum, { weight }) => sum + weight, 0);
  return taps.map(({ index, weight }) => ({ index, weight: weight / total }));
}

function cubic(x: number, a: number): number {
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

function clamp(index: number, size: number): number {
  return Math.min(size - 1, Math.max(0, index));
}
