// Where a place of a resized axis lies in the input, and which element is nearest to it: the rules of ONNX's operator
// Resize-19, written once. This is TypeScript and AssemblyScript alike (`number` is float64 in both): the reference, the
// tables of the GPU (engine/ops/resize_taps.ts, which numbers the rules) and the kernel in resize.ts use these lines.

/** The coordinate of place `at` of `to`, on an axis of `from` elements. `scale · from` is the size before rounding. */
export function coordinateOf(rule: number, at: number, from: number, to: number, scale: number): number {
  const length = scale * from;
  // half_pixel
  if (rule == 0) return (at + 0.5) / scale - 0.5;
  // half_pixel_symmetric
  if (rule == 1) return from / 2 * (1 - to / length) + (at + 0.5) / scale - 0.5;
  // pytorch_half_pixel
  if (rule == 2) return length == 1 ? 0 : (at + 0.5) / scale - 0.5;
  // align_corners
  if (rule == 3) return length == 1 ? 0 : at * (from - 1) / (length - 1);
  // asymmetric
  return at / scale;
}

/** The index nearest to a coordinate; it may lie beyond the edge. */
export function nearestOf(rounding: number, x: number): number {
  // round_prefer_floor
  if (rounding == 0) return Math.ceil(x - 0.5);
  // round_prefer_ceil
  if (rounding == 1) return Math.floor(x + 0.5);
  // floor, ceil
  return rounding == 2 ? Math.floor(x) : Math.ceil(x);
}
